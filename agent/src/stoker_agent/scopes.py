"""Scopes of systemd: control groups, whose limits hold for all processes of a run together."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Sequence

from stoker_agent.run_options import RunOptions

_log = logging.getLogger("stoker-agent")
_PROBE_SECONDS = 10.0
_BOOTED = Path("/run/systemd/system")

#: Runs the command in its arguments, and writes the memory events of its own control group to the file $1 afterwards.
#: The group disappears with its last process. TERM must not end the shell before the command ends.
_SUPERVISOR = """report=$1; shift; trap : TERM; "$@"; code=$?
while IFS=: read -r _ names path; do case $names in
"") cat "/sys/fs/cgroup$path/memory.events";;
*memory*) cat "/sys/fs/cgroup/$names$path/memory.oom_control";;
esac; done </proc/self/cgroup >"$report" 2>/dev/null
exit $code"""


class Systemd:
    """The systemd of this machine. One process asks it once; a failure is asked again for every run."""

    def __init__(self) -> None:
        self._works = False

    def is_available(self) -> bool:
        """Whether systemd creates scopes for the agent."""
        if not self._works and os.geteuid() == 0 and _BOOTED.is_dir() and shutil.which("systemd-run"):
            self._works = _probe()
        return self._works


def _probe() -> bool:
    try:
        command = ["systemd-run", "--scope", "--quiet", "--collect", "-p", "TasksMax=16", "true"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("scope.unavailable: systemd-run fails: %s", error)
        return False
    if done.returncode:
        _log.warning("scope.unavailable: systemd-run fails: %s", done.stderr.decode("utf-8", "replace").strip())
    return done.returncode == 0


def wrap(argv: Sequence[str], id: str, options: RunOptions, report: Path) -> List[str]:
    """
    Return the command that runs ``argv`` in a scope with the limits of ``options``.

    ``id`` is that of the run. The memory events of the scope go to the file ``report``.
    """
    properties = [f"--property={name}={value}" for name, value in _properties(options).items()]
    unit = f"--unit=stoker-run-{id}-{time.time_ns():x}"
    systemd_run = ["systemd-run", "--scope", "--quiet", "--collect", unit, *properties, "--"]
    return [*systemd_run, "/bin/sh", "-c", _SUPERVISOR, "stoker-run", str(report), *argv]


def _properties(options: RunOptions) -> Dict[str, str]:
    properties: Dict[str, str] = {}
    if options.memory_max is not None:
        properties.update(MemoryMax=options.memory_max, MemorySwapMax="0")
    if options.cpu_max is not None:
        properties.update(CPUQuota=options.cpu_max)
    if options.tasks_max is not None:
        properties.update(TasksMax=str(options.tasks_max + 1))  # the supervisor is a task of the scope
    return properties


def has_exceeded_memory(report: Path) -> bool:
    """Whether the kernel killed a process of the scope because of its memory limit."""
    try:
        lines = report.read_text().splitlines()
    except OSError:
        return False
    return any(re.fullmatch("oom_kill [1-9][0-9]*", line) for line in lines)


SYSTEMD = Systemd()
