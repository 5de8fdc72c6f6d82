"""Processes of local servers, identified in Linux's /proc by the marker that they inherit from the agent."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

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
