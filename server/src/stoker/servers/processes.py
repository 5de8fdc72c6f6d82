"""
Processes of local servers, identified in Linux's /proc by the marker that they inherit from the agent, and the end of
agents, which need not be children of this process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

MARKER = "STOKER_LOCAL_SERVER"
_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.02


class Watch:
    """Calls ``on_end`` with the name of each watched process that ends, on a thread of the process."""

    def __init__(self, on_end: Callable[[str], None]) -> None:
        self._on_end = on_end
        #: Held during a call of ``on_end``, so that none is under way when ``stop`` returns.
        self._lock = threading.Lock()
        #: The open file of the process by its name, without those that are not watched any more.
        self._files: dict[str, int] = {}
        self._has_stopped = False

    def add(self, name: str, pid: int) -> None:
        """Watch the process ``pid`` under a name; replaces a process of the same name."""
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            self._on_end(name)
            return
        self._files[name] = file
        threading.Thread(target=self._await, args=(name, file), daemon=True).start()  # noqa: TID251 — one call

    def forget(self, name: str) -> None:
        """Stop watching the process of this name."""
        self._files.pop(name, None)

    def stop(self) -> None:
        """Stop watching; processes that end later are not reported."""
        with self._lock:
            self._has_stopped = True

    def _await(self, name: str, file: int) -> None:
        ended = select.poll()
        ended.register(file, select.POLLIN)
        ended.poll()
        with self._lock:
            # Before the file is closed: another process may get its number afterwards.
            is_watched = self._files.get(name) == file and not self._has_stopped
            os.close(file)
            if is_watched:
                del self._files[name]
                self._on_end(name)


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
