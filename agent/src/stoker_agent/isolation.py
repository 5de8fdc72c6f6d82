"""Runs the processes of one run as another user and within limits, those of a scope of systemd if there are several."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

import stoker_agent
from stoker_agent import files, launcher
from stoker_agent.environment import Account
from stoker_agent.programs import CannotRun
from stoker_agent.run_options import RunOptions
from stoker_agent.runs import CWD, TMP

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
#: Files in a run's directory: the launcher's plan, its failure, and the memory events of the run's control group.
_PLAN, _ERROR, _EVENTS = "launch.json", "launch-error", "memory-events"
#: Subdirectory of a run's directory for the files of another user.
_WORKING = "work"
_CONTROLLERS = {"memory_max": "memory", "cpu_max": "cpu", "tasks_max": "pids"}
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 — the directories that private_tmp replaces


class Isolation:
    """
    The user and the limits of one run. ``entry`` is the document's entry, ``folder`` the run's directory.

    Raises CannotRun if the options are invalid, or if this machine cannot apply them.
    """

    def __init__(self, entry: Mapping[str, Any], folder: Path) -> None:
        self._id: str = entry["id"]
        self._folder = folder
        self._options = options = RunOptions.of(entry)
        #: Whether ``wrap`` changes nothing.
        self.is_plain = options.is_plain
        self._limit_text = entry["options"]["memory_max"] if options.memory_max is not None else ""
        self.account = _account(options.user)
        #: Whether the run's user is not the agent's own.
        self.is_other_user = self.account.uid != os.geteuid()
        self._has_scope = options.needs_scope and _SYSTEMD.is_available()
        #: The limits that do not hold, for the option ``limits: best_effort``.
        self.unenforced = self._list_unenforced()
        if self.unenforced and options.is_strict:
            raise CannotRun(
                f"The limits {', '.join(self.unenforced)} cannot be enforced on this server: remove the options, or set"
                " the option limits to best_effort"
            )
        #: The directory of the files that the run's user reads and writes.
        self.working = self._make_working() if self.is_other_user else folder

    def change_owner(self, working: Path, handles: Sequence[int]) -> None:
        """
        Make the run's user the owner of a directory, with the files in it, and of open files. Raises OSError.

        The directory has to be new: no process of the user may have changed it.
        """
        files.change_owner(working, self.account.uid, self.account.gid)
        for handle in handles:
            os.fchown(handle, self.account.uid, self.account.gid)

    def make_cwd(self) -> Path:
        """Return the directory in which the run's processes start. It belongs to the run's user. Raises OSError."""
        folder = self._folder / CWD
        if not folder.exists():
            folder.mkdir(mode=0o700)
            if self.is_other_user:
                os.chown(str(folder), self.account.uid, self.account.gid)
        return folder

    def hook_state(self, own: Path) -> Path:
        """Return the directory of the hooks' state: ``own``, or a directory of the run's user."""
        if not self.is_other_user:
            return own
        folder = own.with_name("hooks-of-users") / str(self.account.uid)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.parent.chmod(0o711)
        os.chown(str(folder), self.account.uid, self.account.gid)
        return folder

    def wrap(self, argv: Sequence[str], environment: Mapping[str, str]) -> List[str]:
        """
        Return the command that runs ``argv`` with this user, these limits and this environment. Raises OSError.

        The command itself has to run with the agent's own rights and without the environment of the run.
        """
        if self.is_plain:
            return list(argv)
        plan = self._folder / _PLAN
        files.write(plan, json.dumps(self._plan(argv, environment)).encode())
        archive = Path(stoker_agent.__file__).parents[1]
        command = [sys.executable, "-I", "-c", launcher.CHILD, str(archive), str(plan)]
        if self._has_scope:
            return _wrap_in_scope(command, self._id, self._options, self._folder / _EVENTS)
        return command

    def problem(self) -> Optional[str]:
        """Return why the last command of ``wrap`` never became its program, or None if it did."""
        if self.is_plain:
            return None
        if self._folder.joinpath(_PLAN).exists():
            return "The run could not be started: systemd-run failed"
        try:
            return self._folder.joinpath(_ERROR).read_text(errors="replace") or None
        except FileNotFoundError:  # the launcher was killed
            return None

    def exceeded(self) -> Optional[str]:
        """Return the limit that ended processes of the run, as a reason for its failure, or None."""
        if self._has_scope and _has_exceeded_memory(self._folder / _EVENTS):
            return f"exceeded memory_max {self._limit_text}"
        return None

    def clean_up(self) -> None:
        """Remove the plan at the end of the run, because it contains the run's environment."""
        if not self.is_plain:
            self._folder.joinpath(_PLAN).unlink(missing_ok=True)

    def _list_unenforced(self) -> List[str]:
        options, is_root = self._options, os.geteuid() == 0
        names = []
        if options.cpu_max is not None and not self._has_scope:
            names.append("cpu_max")
        if options.tasks_max is not None and not self._has_scope and self.account.uid == 0:
            names.append("tasks_max")
        if options.private_tmp and (not is_root or self._is_below_tmp()):
            names.append("private_tmp")
        return names

    def _is_below_tmp(self) -> bool:
        """Whether a private /tmp would hide files that the run needs."""
        needed = (self._folder, Path(sys.executable), Path(stoker_agent.__file__))
        return any(directory in path.resolve().parents for path in needed for directory in _TEMPORARY)

    def _make_working(self) -> Path:
        """
        Make the directory that will belong to the run's user, inside directories that stay the agent's.

        The user may enter the agent's directories and not list them; the agent's files have mode 0600.
        """
        for folder in (self._folder.parents[1], self._folder.parent, self._folder):
            folder.chmod(folder.stat().st_mode & 0o777 | 0o011)
        working = self._folder / _WORKING
        working.mkdir(mode=0o700, exist_ok=True)
        return working

    def _plan(self, argv: Sequence[str], environment: Mapping[str, str]) -> Dict[str, Any]:
        options = self._options
        limits = {name: controller for name, controller in _CONTROLLERS.items() if getattr(options, name) is not None}
        tmp = {"TMPDIR": str(self._make_tmp())} if options.private_tmp else {}
        return {
            "argv": list(argv),
            "environment": {**environment, **tmp},
            "user": self.account._asdict() if self.is_other_user else None,
            "nice": options.nice,
            "mounts_tmp": options.private_tmp and "private_tmp" not in self.unenforced,
            "resources": {} if self._has_scope else self._resources(),
            "controllers": {controller: name for name, controller in limits.items()} if self._has_scope else {},
            "is_strict": options.is_strict,
            "error": str(self._folder / _ERROR),
        }

    def _resources(self) -> Dict[str, int]:
        """Return the limits of each process, which take the place of those of a control group."""
        limits = {"RLIMIT_DATA": self._options.memory_max, "RLIMIT_NPROC": self._options.tasks_max}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def _make_tmp(self) -> Path:
        """
        Return the run's own /tmp, in a directory that only the run's user enters.

        Tools such as apt write to /tmp as a user of their own, which the mount at /tmp permits.
        """
        private = self._folder / TMP
        folder = private / TMP
        if not private.exists():
            private.mkdir(mode=0o700)
            folder.mkdir()
            folder.chmod(0o1777)
            os.chown(str(private), self.account.uid, self.account.gid)  # last: the user could replace the inner one
        return folder


def _account(name: Optional[str]) -> Account:
    own = Account.own()
    if name is None or name == own.name:
        return own
    try:
        account = Account.of(name)
    except KeyError:
        raise CannotRun(f"The option user names {name!r}, and this server has no such user") from None
    if os.geteuid() not in (0, account.uid):
        raise CannotRun(
            f"The agent runs as {own.name}, without root's rights, and cannot run this config as {name}: remove the"
            " option user, or run the agent as root"
        )
    return account


class _Systemd:
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


def _wrap_in_scope(argv: Sequence[str], id: str, options: RunOptions, report: Path) -> List[str]:
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
        properties.update(MemoryMax=str(options.memory_max), MemorySwapMax="0")
    if options.cpu_max is not None:
        properties.update(CPUQuota=f"{options.cpu_max}%")
    if options.tasks_max is not None:
        properties.update(TasksMax=str(options.tasks_max + 1))  # the supervisor is a task of the scope
    return properties


def _has_exceeded_memory(report: Path) -> bool:
    """Whether the kernel killed a process of the scope because of its memory limit."""
    try:
        lines = report.read_text().splitlines()
    except OSError:
        return False
    return any(re.fullmatch("oom_kill [1-9][0-9]*", line) for line in lines)


_SYSTEMD = _Systemd()
