"""Batches of what agents do most: they report results, show that they are alive, and read their documents."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.deployments import reports
from stoker.deployments.documents import Documents
from stoker.deployments.reports import Report
from stoker.http.batches import Batches
from stoker.model.errors import EntityNotFound
from stoker.servers.keys import KeyRequest, Keys
from stoker.servers.last_seen import LastSeen
from stoker.stacks.engine import Engine
from stoker.store.open import Store


class AgentBatches:
    """
    The batches of one process.

    - ``reports``: results of runs. The result is the status of the deployment.
    - ``heartbeats``: pairs of server id and agent header.
    - ``documents``: pairs of server id and whether the agent knows modes.
    - ``keys``: agents' keys that are not cached, as after a restart. The result is the server's id.
    """

    def __init__(self, store: Store, engine: Engine, last_seen: LastSeen, documents: Documents, keys: Keys) -> None:
        self._store = store
        self._engine = engine
        self._last_seen = last_seen
        self.reports = Batches("reports", self._apply)
        self.heartbeats = Batches[tuple[str, str], None]("heartbeats", self._write_heartbeats, size=500)
        self.documents = Batches("documents", documents.load_agents)
        self.keys = Batches[KeyRequest, str]("keys", keys.authenticate_all)

    def _apply(self, batch: Sequence[Report]) -> Sequence[str | EntityNotFound | None]:
        env, limit = self._engine.env, self._engine.limits.log_bytes
        return self._store.write(lambda tx: reports.apply(tx, env, batch, limit))

    def _write_heartbeats(self, seen: Sequence[tuple[str, str]]) -> Sequence[None]:
        self._last_seen.write_all(seen)
        return [None] * len(seen)
