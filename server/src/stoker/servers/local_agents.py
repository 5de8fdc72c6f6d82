"""
The agent processes of local servers, each with its own root directory.

All processes that descend from a local server inherit a marker in their environment, so that deleting the server ends
all of them, daemons included.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from stoker import private_file
from stoker.backoff import backoff
from stoker.servers.processes import MARKER, Watch, agent_of, end_agents, end_all

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
        self._pids: dict[str, int] = {}
        #: Child processes of this process, which it has to reap.
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._watch = Watch(self._report_end)

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
        self._pids[server_id] = running
        self._watch.add(server_id, running)

    def delete(self, server_id: str) -> None:
        """End all processes of the server and delete its directory."""
        self._watch.forget(server_id)
        try:
            end_all(server_id)
        finally:
            self._reap(server_id)
        self._pids.pop(server_id, None)
        self.pauses.forget(server_id)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._folder / server_id)

    def shut_down(self) -> None:
        """Stop the agents, and only them. ``on_end`` is not called."""
        self._watch.stop()
        end_agents(self._pids)
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

    def _report_end(self, server_id: str) -> None:
        self._reap(server_id)
        self._on_end(server_id)

    def _reap(self, server_id: str) -> None:
        """Reap an ended child process, which otherwise remains in /proc."""
        child = self._children.get(server_id)
        if child is not None and child.poll() is not None:
            del self._children[server_id]
