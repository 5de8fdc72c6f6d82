"""Starts the processes of a run with the environment that the run gets, and finds them again after a restart."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Mapping, Optional

from stoker_agent.environment import Account, base, from_option, read_file
from stoker_agent.isolation import Isolation
from stoker_agent.programs import CannotRun, Folders, Program, option
from stoker_agent.termination import GRACE_SECONDS, processes

#: The environment variable of every process that a run starts. Its value identifies processes that an earlier agent
#: left behind. The value is a directory, because several agents on one machine may run the same config.
_MARKER = "STOKER_RUN_DIR"


class Launch:
    """
    How the processes of one run start, and what the launch adds to the run's result.

    ``entry`` is the document's entry, ``folder`` the run's directory, and ``variables`` the file with the variables
    that the machine's administrator adds to every run. Raises CannotRun for options that this machine cannot apply.
    """

    def __init__(self, entry: Mapping[str, Any], folder: Path, variables: Path) -> None:
        self._id: str = entry["id"]
        self._folder = folder
        self._isolation = Isolation(entry, folder)
        try:
            own = read_file(variables)
        except OSError as error:
            raise CannotRun(f"The variables for runs cannot be read: {error}") from None
        marker = {_MARKER: str(folder)}
        self._agent_environment = {**base(Account.own(), os.environ), **own, **marker}
        self._environment = {
            **base(self._isolation.account, os.environ),
            **own,
            **from_option(option(entry, "environment")),
        }
        self._added = {**marker, "STOKER_RUN": self._id, "STOKER_PROGRESS": str(folder / "progress")}

    @property
    def folders(self) -> Folders:
        """The directories of the run; other users than the agent's have directories of their own."""
        isolation = self._isolation
        return Folders(self._folder, isolation.working, isolation.hook_state(self._folder.parents[1] / "hooks"))

    def start(self, command: Program) -> subprocess.Popen[bytes]:
        """
        Start a program of the run in a session of its own. Raises OSError.

        The output goes to files, not pipes: neither a daemon that keeps them open nor a hook that reads nothing blocks
        the agent. The files are opened to append, so that a script may also write to ``/dev/stdout``.
        """
        environment = {**self._environment, **command.environment, **self._added}
        argv = self._isolation.wrap(command.argv, environment)
        is_plain = self._isolation.is_plain
        with contextlib.ExitStack() as files:
            stdin_file = files.enter_context(tempfile.TemporaryFile(dir=str(self._folder)))
            stdin_file.write(command.stdin)
            stdin_file.seek(0)
            out = files.enter_context(self._open(command.stdout))
            err = files.enter_context(self._open("stderr"))
            for name in self._isolation.unenforced:
                err.write(f"stoker-agent: the limit {name} is not enforced on this server\n".encode())
            err.flush()
            if self._isolation.is_other_user:
                progress = files.enter_context(self._open("progress"))
                handles = [file.fileno() for file in (stdin_file, out, err, progress)]
                self._isolation.change_owner(command.working, handles)
            return subprocess.Popen(
                argv,
                env=environment if is_plain else self._agent_environment,
                stdin=stdin_file,
                stdout=out,
                stderr=err,
                cwd=str(self._isolation.make_cwd()),
                start_new_session=True,
            )

    def _open(self, name: str) -> BinaryIO:
        """Open a file of the run to append. Other users may enter the directory if the run's user does."""
        path = str(self._folder / name)
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")

    def problem(self) -> Optional[str]:
        """Return why the last program never started, or None if it did."""
        return self._isolation.problem()

    def complete(self, values: Mapping[str, Any]) -> Dict[str, Any]:
        """Return the values of a run that has ended, with the limit that it exceeded as the reason of a failure."""
        self._isolation.clean_up()
        reason = self._isolation.exceeded() if values.get("deploy_status_code") else None
        return {**values, "deploy_status_reason": reason} if reason else dict(values)


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
