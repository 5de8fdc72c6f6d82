"""
The user and the limits of a run, from the options of its config, and the scopes of systemd that enforce the limits.

A scope is a control group, whose limits hold for all processes of a run together.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

from stoker_agent.hook_contract import HookError

_log = logging.getLogger("stoker-agent")


class RunOptions(NamedTuple):
    """The options of one config. None and False: the run has no such limit."""

    #: Name of the user; None: the agent's own.
    user: Optional[str] = None
    #: Bytes, such as ``512M``, as systemd writes them.
    memory_max: Optional[str] = None
    #: A share of one CPU, such as ``50%``.
    cpu_max: Optional[str] = None
    #: Number of processes and threads.
    tasks_max: Optional[int] = None
    nice: Optional[int] = None
    private_tmp: bool = False
    #: Whether the run fails if the machine cannot enforce one of the limits.
    is_strict: bool = True

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> RunOptions:
        """Return the options of a document's entry. Raises HookError with the name of an invalid option."""
        options = entry.get("options")
        if not isinstance(options, dict):
            return cls()
        values: Dict[str, Any] = {}
        for name, parse in _PARSERS.items():
            value = options.get(name)
            if value is not None:
                try:
                    values[name] = parse(value)
                except (KeyError, TypeError, ValueError):
                    raise HookError(f"The option {name} cannot be {value!r:.100}") from None
        is_strict = values.pop("limits", True)
        return cls(is_strict=is_strict, **values)

    @property
    def is_plain(self) -> bool:
        """Whether the run needs no launcher."""
        return self._replace(is_strict=True) == RunOptions()


def _user(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _matching(pattern: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if not re.fullmatch(pattern, str(value)):
            raise ValueError
        return str(value).lstrip("0")  # which systemd takes for the sign of an octal number

    return parse


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        number = int(str(value))
        if isinstance(value, bool) or not least <= number <= most:
            raise ValueError
        return number

    return parse


def _flag(value: Any) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def _is_strict(value: Any) -> bool:
    return {"strict": True, "best_effort": False}[str(value)]


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "user": _user,
    "memory_max": _matching("0*[1-9][0-9]{0,14}[KMGT]?"),
    "cpu_max": _matching("0*[1-9][0-9]{0,5}%"),
    "tasks_max": _whole(1, 4194304),
    "nice": _whole(-20, 19),
    "private_tmp": _flag,
    "limits": _is_strict,
}

_PROBE_SECONDS = 10.0
_BOOTED = Path("/run/systemd/system")
_SYSTEMD_RUN = ("systemd-run", "--scope", "--quiet", "--collect")

#: Runs the command in its arguments, and writes the memory events of its own control group to the file $1 afterwards.
#: The group disappears with its last process. TERM must not end the shell before the command ends.
_SUPERVISOR = """report=$1; shift; trap : TERM; "$@"; code=$?
while IFS=: read -r _ names path; do case $names in
"") cat "/sys/fs/cgroup$path/memory.events";;
*memory*) cat "/sys/fs/cgroup/$names$path/memory.oom_control";;
esac; done </proc/self/cgroup >"$report" 2>/dev/null
exit $code"""


#: Shows the limits that hold in its own control group, of version 2 or 1.
_SHOW_LIMITS = """while IFS=: read -r _ names path; do
cd "/sys/fs/cgroup/$names$path" 2>/dev/null || continue
grep -Hs . memory.max memory.limit_in_bytes cpu.max cpu.cfs_quota_us pids.max
done </proc/self/cgroup; exit 0"""
#: By option: the files with its limit, of both versions.
LIMITS = {
    "memory_max": {"memory.max", "memory.limit_in_bytes"},
    "cpu_max": {"cpu.max", "cpu.cfs_quota_us"},
    "tasks_max": {"pids.max"},
}
#: Version 1 shows a missing memory limit as a number close to 2**63.
_UNLIMITED = 2**62


#: What ``list_enforced`` returns, as soon as systemd has answered.
_enforced: Set[str] = set()


def list_enforced() -> Set[str]:
    """
    Return the options whose limits hold in the scopes that systemd creates for the agent.

    One process asks systemd once; a failure is asked again for every run.
    """
    if not _enforced and os.geteuid() == 0 and _BOOTED.is_dir() and shutil.which("systemd-run"):
        _enforced.update(_probe())
    return _enforced


def _probe() -> Set[str]:
    """Create a scope with all limits. systemd ignores those whose controllers the kernel does not have."""
    properties = _properties(RunOptions(memory_max="64M", cpu_max="50%", tasks_max=16))
    try:
        command = [*_SYSTEMD_RUN, *properties, "--", "/bin/sh", "-c", _SHOW_LIMITS]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("scope.unavailable: systemd-run fails: %s", error)
        return set()
    if done.returncode:
        _log.warning("scope.unavailable: systemd-run fails: %s", done.stderr.decode("utf-8", "replace").strip())
        return set()
    limits = (line.partition(":") for line in done.stdout.decode().splitlines())
    limited = {file for file, _, limit in limits if limit.split()[0].isdigit() and int(limit.split()[0]) < _UNLIMITED}
    return {option for option, files in LIMITS.items() if files & limited}


def wrap(argv: Sequence[str], id: str, options: RunOptions, report: Path) -> List[str]:
    """
    Return the command that runs ``argv`` in a scope with the limits of ``options``.

    ``id`` is that of the run. The memory events of the scope go to the file ``report``.
    """
    unit = f"--unit=stoker-run-{id}-{time.time_ns():x}"
    supervisor = ["/bin/sh", "-c", _SUPERVISOR, "stoker-run", str(report)]
    return [*_SYSTEMD_RUN, unit, *_properties(options), "--", *supervisor, *argv]


def _properties(options: RunOptions) -> List[str]:
    properties: Dict[str, str] = {}
    if options.memory_max is not None:
        properties.update(MemoryMax=options.memory_max, MemorySwapMax="0")
    if options.cpu_max is not None:
        properties.update(CPUQuota=options.cpu_max)
    if options.tasks_max is not None:
        properties.update(TasksMax=str(options.tasks_max + 1))  # the supervisor is a task of the scope
    return [f"--property={name}={value}" for name, value in properties.items()]


def has_exceeded_memory(report: Path) -> bool:
    """Whether the kernel killed a process of the scope because of its memory limit."""
    try:
        lines = report.read_text().splitlines()
    except OSError:
        return False
    return any(re.fullmatch("oom_kill [1-9][0-9]*", line) for line in lines)
