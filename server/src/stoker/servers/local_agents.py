"""
The agent processes of local servers, each with its own root directory.

All processes that descend from a local server inherit a marker in their environment, by which they are found in Linux's
/proc, so that deleting the server ends all of them, daemons included. Agents need not be children of this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from stoker import private_file
from stoker.failures import backoff

#: Seconds: pause before an agent that ended is restarted, doubled after each early end; its limit; the lifetime that
#: resets it.
_PAUSE, _LONGEST_PAUSE, _SETTLED = 0.5, 60.0, 60.0
#: The umask that services of a machine have, independent of this process's own.
_UMASK = 0o022
_log = structlog.get_logger("stoker.local")


class RestartPauses:
    """The pauses before agents are restarted, by server id."""

    def __init__(self) -> None:
        #: Server id → (time of the last start, number of early ends in succession).
        self._falls: dict[str, tuple[float, int]] = {}

    def record_start(self, server_id: str) -> None:
        """Record that the server's agent starts now."""
        self._falls[server_id] = (time.monotonic(), self._falls.get(server_id, (0.0, 0))[1])

    def next(self, server_id: str) -> float:
        """Record the end of the server's agent, and return the seconds until it may start again."""
        started, falls = self._falls.get(server_id, (0.0, 0))
        if time.monotonic() - started > _SETTLED:
            falls = 0
        self._falls[server_id] = (started, falls + 1)
        return backoff(falls, first=_PAUSE, longest=_LONGEST_PAUSE)

    def forget(self, server_id: str) -> None:
        """Forget a deleted server."""
        self._falls.pop(server_id, None)


class LocalAgents:
    """
    Starts, watches and ends the agents.

    The servers' directories are below ``folder``; agents connect to ``url``, whose certificate ``ca_file`` verifies.
    ``on_end`` is called with a server's id, on another thread, when its agent has ended.
    """

    def __init__(self, folder: Path, url: str, ca_file: Path | None, on_end: Callable[[str], None]) -> None:
        self._folder = folder
        self._url = url
        self._trust = {"ca_file": str(ca_file)} if ca_file else {}
        self._on_end = on_end
        self.pauses = RestartPauses()
        #: Child processes of this process, which it has to reap.
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        #: Held during a call of ``on_end``, so that none is under way when ``shut_down`` ends the agents.
        self._lock = threading.Lock()
        #: The id and the open file of each process whose end is reported.
        self._watched: dict[str, tuple[int, int]] = {}
        self._has_stopped = False

    def bring_up(self, server_id: str, key: str) -> None:
        """Start the server's agent, or find it running. Raises OSError."""
        root = self._folder / server_id
        fresh = not root.exists()
        changed = self._prepare(root, {"url": self._url, "server_id": server_id, "key": key, **self._trust})
        running = None if fresh else agent_of(server_id, root / "agent.pid")
        if running is None:
            running = self._spawn(server_id, root)
        elif changed:
            # The agent has to restart with the new configuration. The watch observes its end and starts it again.
            with contextlib.suppress(ProcessLookupError):
                os.kill(running, signal.SIGTERM)
        self._watch(server_id, running)

    def delete(self, server_id: str) -> None:
        """End all processes of the server and delete its directory."""
        self._watched.pop(server_id, None)
        try:
            end_all(server_id)
        finally:
            self._reap(server_id)
        self.pauses.forget(server_id)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._folder / server_id)

    def shut_down(self) -> None:
        """Stop the agents, and only them. ``on_end`` is not called."""
        with self._lock:
            self._has_stopped = True
        end_agents({server_id: pid for server_id, (pid, _) in self._watched.items()})
        for child in self._children.values():
            child.poll()

    def _prepare(self, root: Path, config: Mapping[str, str]) -> bool:
        """Write the agent's configuration; return whether it differs from the previous one."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (root, *(root / name for name in ("etc", "home", "logs", "hooks", "state"))):
            folder.mkdir(mode=0o700, exist_ok=True)
        path, text = root / "etc" / "agent.json", json.dumps(config)
        with contextlib.suppress(FileNotFoundError):
            if path.read_text() == text:
                return False
        private_file.replace(path, text.encode())
        return True

    def _spawn(self, server_id: str, root: Path) -> int:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("STOKER_", "OS_"))},
            "HOME": str(root / "home"),
            MARKER: server_id,
        }
        with root.joinpath("logs", "agent.out").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "stoker_agent", "run", "--root", str(root)],
                cwd=root / "home",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                umask=_UMASK,
            )
        self._children[server_id] = process
        self.pauses.record_start(server_id)
        root.joinpath("agent.pid").write_text(str(process.pid))
        _log.debug("local_agent.started", server_id=server_id, pid=process.pid)
        return process.pid

    def _watch(self, server_id: str, pid: int) -> None:
        """Report the end of the server's agent, in place of that of an earlier process, on a thread of its own."""
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            self._report_end(server_id)
            return
        self._watched[server_id] = pid, file
        threading.Thread(target=self._await, args=(server_id, file), daemon=True).start()  # noqa: TID251 — one call

    def _await(self, server_id: str, file: int) -> None:
        ended = select.poll()
        ended.register(file, select.POLLIN)
        ended.poll()
        with self._lock:
            # Before the file is closed: another process may get its number afterwards.
            is_watched = self._watched.get(server_id, (0, None))[1] == file and not self._has_stopped
            os.close(file)
            if is_watched:
                del self._watched[server_id]
                self._report_end(server_id)

    def _report_end(self, server_id: str) -> None:
        self._reap(server_id)
        self._on_end(server_id)

    def _reap(self, server_id: str) -> None:
        """Reap an ended child process, which otherwise remains in /proc."""
        child = self._children.get(server_id)
        if child is not None and child.poll() is not None:
            del self._children[server_id]


MARKER = "STOKER_LOCAL_SERVER"
_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.02


def marked(server_id: str) -> list[int]:
    """Return the ids of all running processes that descend from this local server's agent, the agent included."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _has(entry, server_id)]


def agent_of(server_id: str, pid_file: Path) -> int | None:
    """
    Return the id of the server's running agent; None if there is none.

    The id in ``pid_file`` counts only if its process is this agent.
    """
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file.read_text())
        if _is_agent(pid, server_id):
            return pid
    # If Stoker was killed between the start of an agent and the write of the file, only a search finds the agent.
    return next((pid for pid in marked(server_id) if _is_agent(pid, server_id)), None)


def end_all(server_id: str) -> None:
    """
    Terminate all processes of the server; kill processes that still run after two seconds.

    Raises RuntimeError if some remain.
    """
    signalled: set[int] = set()
    started = time.monotonic()
    while pids := marked(server_id):
        patience = time.monotonic() - started
        if patience > 2 * _GRACE_SECONDS:
            raise RuntimeError(f"processes of local server {server_id} do not end: {pids}")
        for pid in pids:
            if patience > _GRACE_SECONDS:
                _send(pid, signal.SIGKILL)
            elif pid not in signalled:
                _send(pid, signal.SIGTERM)
        signalled.update(pids)
        time.sleep(_LOOK_SECONDS)


def end_agents(agents: dict[str, int]) -> None:
    """Terminate these agents (server id → process id) and wait up to two seconds for their end."""
    for server_id, pid in agents.items():
        if _is_agent(pid, server_id):
            _send(pid, signal.SIGTERM)
    until = time.monotonic() + _GRACE_SECONDS
    while any(_is_agent(pid, server_id) for server_id, pid in agents.items()) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)


def _is_agent(pid: int, server_id: str) -> bool:
    """
    Return whether the process is a session leader that runs the agent.

    The marker or the id alone is not sufficient: a script of the server may have either.
    """
    entry = Path("/proc", str(pid))
    try:
        words = entry.joinpath("cmdline").read_bytes().split(b"\0")
        return b"stoker_agent" in words and _has(entry, server_id) and os.getsid(pid) == pid
    except OSError:
        return False


def _has(entry: Path, server_id: str) -> bool:
    try:
        return f"{MARKER}={server_id}".encode() in entry.joinpath("environ").read_bytes().split(b"\0")
    except OSError:
        return False  # the process ended, or belongs to another user


def _send(pid: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)
