"""
The local provider: each server is an agent process on this machine, with its own root directory.

For development and the demo. Agents survive if Stoker is killed; the next start finds them again.

One kind of job, keyed by the server's id, starts, restarts and ends the processes of a server. Therefore these actions
never overlap, and a crash loses none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from stoker.model.deployment import Owner, Settled
from stoker.model.errors import StokerError
from stoker.model.server import Kind, Server, ServerOwner
from stoker.servers import enrollment
from stoker.servers.keys import Keys
from stoker.servers.local_agents import LocalAgents
from stoker.store import servers
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import PermanentFailure, Work

JOB = "local.server"
_START, _END = "start", "end"
_ADDRESS = "127.0.0.1"
_log = structlog.get_logger("stoker.local")


class LocalServers:
    """
    The provider of local servers; implements ``servers.compute.Compute``.

    The server's resource, which has the server's id, is woken whenever its agent was started or found running, or
    cannot start.
    """

    def __init__(
        self,
        store: Store,
        work: Work,
        keys: Keys,
        folder: Path,
        url: str,
        ca_file: Path | None = None,
    ) -> None:
        self._store = store
        self._work = work
        self._keys = keys
        self._agents = LocalAgents(folder, url, ca_file, on_end=self._restart)
        self._stopping = False
        work.register(JOB, self._do)

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: ServerOwner) -> None:
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
        self._agents.shut_down()

    def _defer(self, tx: Tx, server_id: str, what: str, pause: float = 0) -> None:
        at = tx.now + timedelta(seconds=pause) if pause else None
        self._work.defer(tx, JOB, server_id, {"server_id": server_id, "do": what}, at=at)

    def _do(self, args: Mapping[str, Any]) -> None:
        if args["do"] == _START:
            self._start(args["server_id"])
        else:
            self._agents.delete(args["server_id"])

    def _start(self, server_id: str) -> None:
        key = self._store.write(lambda tx: self._key(tx, server_id))
        if key is None or self._stopping:
            return  # the server was deleted, or Stoker stops and its next start resumes the server
        try:
            self._agents.bring_up(server_id, key)
        except OSError as error:
            failure = Settled(f"cannot start a local server: {error}")
            self._store.write(lambda tx: tx.wake(Owner.resource(server_id), failure))
            raise PermanentFailure(f"local server {server_id}: {error}") from error
        self._store.write(lambda tx: tx.wake(Owner.resource(server_id)))

    def _key(self, tx: Tx, server_id: str) -> str | None:
        server = servers.find(tx, server_id, for_update=True)
        if server is None:
            return None
        if server.key_generation:
            return self._keys.present(server_id, server.key_generation)
        return self._keys.issue(tx, server_id)

    def _restart(self, server_id: str) -> None:
        """Restart an agent that ended although its server still exists."""
        if self._stopping:
            return
        pause = self._agents.pauses.next(server_id)
        _log.warning("local_agent.ended", server_id=server_id, retry_seconds=pause)
        try:
            self._store.write(lambda tx: self._defer(tx, server_id, _START, pause))
        except StokerError as error:
            _log.error("local_agent.restart_failed", server_id=server_id, error=str(error))
