"""
The local provider: each server is an agent process on this machine, with its own root directory.

For development and the demo. All processes that descend from a local server inherit a marker in their environment, so
that deleting the server ends all of them, daemons included. Agents survive if Stoker is killed; the next start finds
them again.

One kind of job, keyed by the server's id, starts, restarts and ends the processes of a server. Therefore these actions
never overlap, and a crash loses none of them.
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
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from stoker import private_file
from stoker.backoff import backoff
from stoker.model.errors import StokerError
from stoker.model.server import Kind, Owner, Server
from stoker.servers import enrollment
from stoker.servers.keys import Keys
from stoker.servers.processes import MARKER, agent_of, end_agents, end_all, marked
from stoker.servers.watch import Watch
from stoker.store import servers
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import PermanentFailure, Work

__all__ = ["JOB", "LocalServers", "marked"]

JOB = "local.server"
_START, _END = "start", "end"
_ADDRESS = "127.0.0.1"
#: Seconds: pause before an agent that ended is restarted, doubled after each early end; its limit; the lifetime that
#: resets it.
_PAUSE, _LONGEST_PAUSE, _SETTLED = 0.5, 60.0, 60.0
#: The umask that services of a machine have, independent of this process's own.
_UMASK = 0o022
_log = structlog.get_logger("stoker.local")


class LocalServers:
    """
    The provider of local servers; implements ``servers.compute.Compute``.

    ``on_started`` is called with a server's id when its agent was started or found running; ``on_failed`` with the id
    and the reason if the agent cannot start. Both may be called repeatedly.
    """

    def __init__(
        self,
        store: Store,
        work: Work,
        keys: Keys,
        folder: Path,
        url: str,
        ca_file: Path | None = None,
        *,
        on_started: Callable[[str], None],
        on_failed: Callable[[str, str], None],
    ) -> None:
        self._store = store
        self._work = work
        self._keys = keys
        self._folder = folder
        self._url = url
        self._ca_file = ca_file
        self._agents: dict[str, int] = {}
        #: Child processes of this process, which it has to reap.
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        #: Server id → (time of the last start, number of early ends in succession).
        self._falls: dict[str, tuple[float, int]] = {}
        self._stopping = False
        self._watch = Watch(self._on_agent_end)
        self._on_started = on_started
        self._on_failed = on_failed
        work.register(JOB, self._do)

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: Owner) -> None:
        """Record the server and defer its start; ``owner`` is its resource."""
        servers.add(
            tx,
            Server(
                id=server_id,
                project_id=project_id,
                name=name,
                kind=Kind.LOCAL,
                stack_id=owner.stack_id,
                resource_id=owner.resource_id,
                resource_name=owner.resource_name,
                created_at=tx.now,
            ),
        )
        self._defer(tx, server_id, _START)

    def delete(self, tx: Tx, server_id: str) -> None:
        """Delete the server's record and defer the end of its processes."""
        enrollment.forget(tx, server_id)
        self._work.cancel(tx, JOB, server_id)
        self._defer(tx, server_id, _END)

    def address(self, server_id: str) -> str:
        """Return the server's IP address, which is that of this machine."""
        return _ADDRESS

    def resume(self) -> None:
        """Find or restart the agents of all local servers; called at start-up."""

        def do(tx: Tx) -> None:
            for server in servers.of_kind(tx, Kind.LOCAL):
                self._defer(tx, server.id, _START)

        self._store.write(do)

    def shut_down(self) -> None:
        """
        Stop the agents at a regular shutdown. Processes that their scripts started continue, as on a separate machine.
        """
        self._stopping = True
        self._watch.stop()
        end_agents(self._agents)
        for child in self._children.values():
            child.poll()

    def _defer(self, tx: Tx, server_id: str, what: str, pause: float = 0) -> None:
        at = tx.now + timedelta(seconds=pause) if pause else None
        self._work.defer(tx, JOB, server_id, {"server_id": server_id, "do": what}, at=at)

    def _do(self, args: Mapping[str, Any]) -> None:
        if args["do"] == _START:
            self._start(args["server_id"])
        else:
            self._end(args["server_id"])

    def _start(self, server_id: str) -> None:
        key = self._store.write(lambda tx: self._key(tx, server_id))
        if key is None or self._stopping:
            return  # the server was deleted, or Stoker stops and its next start resumes the server
        try:
            self._bring_up(server_id, key)
        except OSError as error:
            self._on_failed(server_id, f"cannot start a local server: {error}")
            raise PermanentFailure(f"local server {server_id}: {error}") from error
        self._on_started(server_id)

    def _key(self, tx: Tx, server_id: str) -> str | None:
        server = servers.find(tx, server_id, for_update=True)
        if server is None:
            return None
        if server.key_generation:
            return self._keys.present(server_id, server.key_generation)
        return self._keys.issue(tx, server_id)

    def _bring_up(self, server_id: str, key: str) -> None:
        root = self._root(server_id)
        fresh = not root.exists()
        config = {"url": self._url, "server_id": server_id, "key": key}
        changed = self._prepare(root, config | ({"ca_file": str(self._ca_file)} if self._ca_file else {}))
        running = None if fresh else agent_of(server_id, root / "agent.pid")
        if running is None:
            running = self._spawn(server_id)
        elif changed:
            # The agent has to restart with the new configuration. The watch observes its end and starts it again.
            with contextlib.suppress(ProcessLookupError):
                os.kill(running, signal.SIGTERM)
        self._agents[server_id] = running
        self._watch.add(server_id, running)

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

    def _spawn(self, server_id: str) -> int:
        root = self._root(server_id)
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
        self._falls[server_id] = (time.monotonic(), self._falls.get(server_id, (0.0, 0))[1])
        root.joinpath("agent.pid").write_text(str(process.pid))
        _log.debug("local_agent.started", server_id=server_id, pid=process.pid)
        return process.pid

    def _on_agent_end(self, server_id: str) -> None:
        """Restart an agent that ended although its server still exists."""
        self._reap(server_id)
        if self._stopping:
            return
        pause = self._pause(server_id)
        _log.warning("local_agent.ended", server_id=server_id, retry_seconds=pause)
        try:
            self._store.write(lambda tx: self._defer(tx, server_id, _START, pause))
        except StokerError as error:
            _log.error("local_agent.restart_failed", server_id=server_id, error=str(error))

    def _pause(self, server_id: str) -> float:
        started, falls = self._falls.get(server_id, (0.0, 0))
        if time.monotonic() - started > _SETTLED:
            falls = 0
        self._falls[server_id] = (started, falls + 1)
        return backoff(falls, first=_PAUSE, longest=_LONGEST_PAUSE)

    def _end(self, server_id: str) -> None:
        self._watch.forget(server_id)
        try:
            end_all(server_id)
        finally:
            self._reap(server_id)
        self._agents.pop(server_id, None)
        self._falls.pop(server_id, None)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._root(server_id))

    def _reap(self, server_id: str) -> None:
        """Reap an ended child process, which otherwise remains in /proc."""
        child = self._children.get(server_id)
        if child is not None and child.poll() is not None:
            del self._children[server_id]

    def _root(self, server_id: str) -> Path:
        return self._folder / server_id
