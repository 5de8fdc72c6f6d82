"""Processes of local servers, found by the marker that each inherits from its server's agent. Linux's /proc."""

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
    """Every living process that this local server started, however far removed."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _has(entry, server_id)]


def agent_of(server_id: str, pid_file: Path) -> int | None:
    """The server's running agent; what the file says is believed only of a process that is one."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file.read_text())
        if _is_agent(pid, server_id):
            return pid
    # A server that was killed between starting an agent and noting it left one that only a search finds.
    return next((pid for pid in marked(server_id) if _is_agent(pid, server_id)), None)


def end_all(server_id: str) -> None:
    """Ask every process of the server to end, and end what has not after two seconds. Raises RuntimeError."""
    asked: set[int] = set()
    started = time.monotonic()
    while pids := marked(server_id):
        patience = time.monotonic() - started
        if patience > 2 * _GRACE_SECONDS:
            raise RuntimeError(f"processes of local server {server_id} do not end: {pids}")
        for pid in pids:
            if patience > _GRACE_SECONDS:
                _send(pid, signal.SIGKILL)
            elif pid not in asked:
                _send(pid, signal.SIGTERM)
        asked.update(pids)
        time.sleep(_LOOK_SECONDS)


def end_agents(agents: dict[str, int]) -> None:
    """Ask these agents, server id → process id, to end, and wait a little until they have."""
    for server_id, pid in agents.items():
        if _is_agent(pid, server_id):
            _send(pid, signal.SIGTERM)
    until = time.monotonic() + _GRACE_SECONDS
    while any(_is_agent(pid, server_id) for server_id, pid in agents.items()) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)


def _is_agent(pid: int, server_id: str) -> bool:
    """A session's leader that runs our module: a script of the server may carry the marker, or the number."""
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
        return False  # ended meanwhile, or somebody else's


def _send(pid: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)
