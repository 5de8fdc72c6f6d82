"""Batches of what agents do most: they report results, show that they are alive, and read their documents."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.deployments.documents import Documents
from stoker.deployments.reports import Report, apply_together
from stoker.deployments.signals import RUN
from stoker.http.batches import Batches
from stoker.model.errors import StokerError
from stoker.servers.keys import KeyRequest, Keys
from stoker.servers.last_seen import LastSeen
from stoker.stacks import signals
from stoker.stacks.engine import Engine
from stoker.store.open import Store
from stoker.store.tx import Tx


class AgentBatches:
    """
    The batches of one process.

    - ``reports``: results of runs. The result is the status of the deployment; None: apply the report alone.
    - ``heartbeats``: pairs of server id and agent header.
    - ``documents``: pairs of server id and whether the agent knows modes.
    - ``keys``: agents' keys that are not cached, as after a restart. The result is the server's id.
    """

    def __init__(self, store: Store, engine: Engine, last_seen: LastSeen, documents: Documents, keys: Keys) -> None:
        self._store = store
        self._engine = engine
        self._last_seen = last_seen
        self.reports = Batches[Report, str | None]("reports", self._apply)
        self.heartbeats = Batches[tuple[str, str], None]("heartbeats", self._write_heartbeats, size=500)
        self.documents = Batches("documents", documents.load_agents)
        self.keys = Batches[KeyRequest, str]("keys", keys.authenticate_all)

    def apply_alone(self, report: Report) -> str:
        """Apply one report in its own transaction. Raises EntityNotFound, and other errors of the report."""
        return self._store.write(lambda tx: self._deliver(tx, report))

    def _deliver(self, tx: Tx, report: Report) -> str:
        run = signals.find_run(tx, report.server_id, report.config_id)
        return signals.deliver(tx, self._engine, run, {**report.values, RUN: report.config_id}) or ""

    def _apply(self, reports: Sequence[Report]) -> list[str | BaseException | None]:
        limit = self._engine.limits.log_bytes

        def do(tx: Tx) -> list[str | None]:
            statuses = apply_together(tx, self._engine.env, reports, limit)
            # A report that comes alone needs no other thread.
            return statuses if statuses != [None] else [self._deliver(tx, reports[0])]

        try:
            return list(self._store.write(do))
        except StokerError as error:
            # One report has an error, but not the others.
            return [error] if len(reports) == 1 else [None] * len(reports)

    def _write_heartbeats(self, seen: Sequence[tuple[str, str]]) -> list[BaseException | None]:
        self._last_seen.write_all(seen)
        return [None] * len(seen)
