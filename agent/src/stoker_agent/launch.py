"""
Starts the processes of a run, as its user and within its limits, and finds them again after a restart.

A run with a user, limits or a ``/tmp`` of its own starts through ``launcher``, in a scope of systemd if it has limits.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Mapping, Optional

import stoker_agent
from stoker_agent import files, launcher
from stoker_agent.environment import base, from_option, own_account, read_file
from stoker_agent.hook_contract import HookError
from stoker_agent.limits import LIMITS, RunOptions, has_exceeded_memory, list_enforced, wrap
from stoker_agent.programs import Folders, Program, option
from stoker_agent.runs import CWD, TMP
from stoker_agent.termination import GRACE_SECONDS, processes

#: The environment variable of every process that a run starts. Its value identifies processes that an earlier agent
#: left behind. The value is a directory, because several agents on one machine may run the same config.
_MARKER = "STOKER_RUN_DIR"
#: Files in a run's directory: the launcher's plan, its failure, and the memory events of the run's control group.
_PLAN, _ERROR, _EVENTS = "launch.json", "launch-error", "memory-events"
#: Subdirectory of a run's directory for the files of another user.
_WORKING = "work"
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 — the directories that private_tmp replaces


class Launch:
    """
    How the processes of one run start, and what the launch adds to the run's result.

    ``entry`` is the document's entry, ``folder`` the run's directory, and ``variables`` the file with the variables
    that the machine's administrator adds to every run. Raises HookError for options that are invalid, or that this
    machine cannot apply.
    """

    def __init__(self, entry: Mapping[str, Any], folder: Path, variables: Path) -> None:
        self._entry = entry
        self._folder = folder
        self._options = options = RunOptions.of(entry)
        self._account = _account(options.user)
        #: Whether the run's user is not the agent's own.
        self._is_other_user = self._account.pw_uid != os.geteuid()
        limits = [name for name in LIMITS if getattr(options, name) is not None]
        enforced = list_enforced() if limits else set()
        self._has_scope = any(name in enforced for name in limits)
        #: The limits that do not hold, for the option ``limits: best_effort``.
        self._unenforced = [name for name in limits if name not in enforced]
        if options.private_tmp and (os.geteuid() != 0 or self._is_below_tmp()):
            self._unenforced.append("private_tmp")
        if self._unenforced and options.is_strict:
            raise HookError(
                f"The limits {', '.join(self._unenforced)} cannot be enforced on this server: remove the options, or"
                " set the option limits to best_effort"
            )
        try:
            own = read_file(variables)
        except OSError as error:
            raise HookError(f"The variables for runs cannot be read: {error}") from None
        marker = {_MARKER: str(folder)}
        self._agent_environment = {**base(own_account(), os.environ), **own, **marker}
        self._environment = {**base(self._account, os.environ), **own, **from_option(option(entry, "environment"))}
        self._added = {**marker, "STOKER_RUN": entry["id"], "STOKER_PROGRESS": str(folder / "progress")}

    @property
    def folders(self) -> Folders:
        """The directories of the run, which are made; other users than the agent's have directories of their own."""
        own = Folders.of(self._folder)
        if not self._is_other_user:
            return own
        states = own.state.with_name("hooks-of-users")
        states.mkdir(mode=0o700, parents=True, exist_ok=True)
        states.chmod(0o711)
        state = self._make_own(states / str(self._account.pw_uid))
        return own._replace(working=self._make_working(), state=state)

    def start(self, command: Program) -> subprocess.Popen[bytes]:
        """
        Start a program of the run in a session of its own. Raises OSError.

        The output goes to files, not pipes: neither a daemon that keeps them open nor a hook that reads nothing blocks
        the agent. The files are opened to append, so that a script may also write to ``/dev/stdout``.
        """
        environment = {**self._environment, **command.environment, **self._added}
        argv = list(command.argv)
        if not self._options.is_plain:
            # The launcher has the agent's own rights, and not the environment of the run.
            argv, environment = self._wrap(argv, environment), self._agent_environment
        with contextlib.ExitStack() as opened:
            stdin_file = opened.enter_context(tempfile.TemporaryFile(dir=str(self._folder)))
            stdin_file.write(command.stdin)
            stdin_file.seek(0)
            out = opened.enter_context(self._open(command.stdout))
            err = opened.enter_context(self._open("stderr"))
            for name in self._unenforced:
                err.write(f"stoker-agent: the limit {name} is not enforced on this server\n".encode())
            err.flush()
            if self._is_other_user:
                # The directory is new: no process of the user may have changed it.
                files.change_owner(command.working, self._account.pw_uid, self._account.pw_gid)
                for file in (stdin_file, out, err, opened.enter_context(self._open("progress"))):
                    os.fchown(file.fileno(), self._account.pw_uid, self._account.pw_gid)
            return subprocess.Popen(
                argv,
                env=environment,
                stdin=stdin_file,
                stdout=out,
                stderr=err,
                cwd=str(self._make_own(self._folder / CWD)),
                start_new_session=True,
            )

    def problem(self) -> Optional[str]:
        """Return why the last program never started, or None if it did."""
        if self._options.is_plain:
            return None
        if self._folder.joinpath(_PLAN).exists():
            return "The run could not be started: systemd-run failed"
        try:
            return self._folder.joinpath(_ERROR).read_text(errors="replace") or None
        except FileNotFoundError:  # the launcher was killed
            return None

    def complete(self, values: Mapping[str, Any]) -> Dict[str, Any]:
        """Return the values of a run that has ended, with the limit that it exceeded as the reason of a failure."""
        self._folder.joinpath(_PLAN).unlink(missing_ok=True)  # it contains the run's environment
        has_exceeded = self._has_scope and has_exceeded_memory(self._folder / _EVENTS)
        if has_exceeded and values.get("deploy_status_code"):
            return {**values, "deploy_status_reason": f"exceeded memory_max {self._options.memory_max}"}
        return dict(values)

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

    def _make_own(self, folder: Path) -> Path:
        """Make a directory that belongs to the run's user, in a directory of the agent. Raises OSError."""
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._is_other_user:
            os.chown(str(folder), self._account.pw_uid, self._account.pw_gid)
        return folder

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
            os.chown(
                str(private), self._account.pw_uid, self._account.pw_gid
            )  # last: the user could replace the inner one
        return folder

    def _wrap(self, argv: List[str], environment: Mapping[str, str]) -> List[str]:
        """Return the command that runs ``argv`` with the run's user, limits and environment. Raises OSError."""
        options, plan = self._options, self._folder / _PLAN
        tmp = {"TMPDIR": str(self._make_tmp())} if options.private_tmp else {}
        content = {
            "argv": argv,
            "environment": {**environment, **tmp},
            "user": self._account[:4] if self._is_other_user else None,
            "nice": options.nice,
            "mounts_tmp": options.private_tmp and "private_tmp" not in self._unenforced,
            "is_strict": options.is_strict,
            "error": str(self._folder / _ERROR),
        }
        files.write(plan, json.dumps(content).encode())
        archive = Path(stoker_agent.__file__).parents[1]
        command = [sys.executable, "-I", "-c", launcher.CHILD, str(archive), str(plan)]
        if self._has_scope:
            return wrap(command, self._entry["id"], options, self._folder / _EVENTS)
        return command

    def _open(self, name: str) -> BinaryIO:
        """Open a file of the run to append. Other users may enter the directory if the run's user does."""
        path = str(self._folder / name)
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")


def _account(name: Optional[str]) -> pwd.struct_passwd:
    own = own_account()
    if name is None or name == own.pw_name:
        return own
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise HookError(f"The option user names {name!r}, and this server has no such user") from None
    if os.geteuid() not in (0, account.pw_uid):
        raise HookError(
            f"The agent runs as {own.pw_name}, without root's rights, and cannot run this config as {name}: remove the"
            " option user, or run the agent as root"
        )
    return account


def end_remaining_processes(folder: Path) -> None:
    """
    Kill the processes that a run left behind. The agent excludes itself, because a run may have started the agent.
    """
    marker = f"{_MARKER}={folder}".encode()
    until = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < until:
        pids = [pid for pid in processes() if pid != os.getpid() and marker in _variables_of(pid)]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _variables_of(pid: int) -> List[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
