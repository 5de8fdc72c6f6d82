"""
Records which runs were sent to an agent and which the agent has acknowledged.

Deliveries are written in the background, in batches. If the process ends before a write, the agent's first report of
the run records its delivery.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import structlog

from stoker.store import deployments
from stoker.store.notifier import deployment_topic
from stoker.store.open import Store
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.deployments")
_BATCH_SECONDS = 0.05
#: Runs in one transaction: a small number, so that other writers need not wait long.
_BATCH_SIZE = 500

#: Pairs of deployment id and derived config id, each of which identifies a run.
RunKeys = Sequence[tuple[str, str]]


class DeliveryTracker:
    """Collects deliveries in memory and writes them in batches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._pending: list[deployments.Delivery] = []

    def record(self, keys: RunKeys, channel: str, *, received: bool) -> None:
        """Record runs as sent now by ``channel``, or as ``received``. Does no I/O."""
        now = self._store.clock.now()
        with self._lock:
            is_scheduled = bool(self._pending)
            self._pending += [deployments.Delivery(*key, channel, now, received) for key in keys]
        if not is_scheduled:
            timer = threading.Timer(_BATCH_SECONDS, self._write)
            timer.daemon = True
            timer.start()

    def _write(self) -> None:
        with self._lock:
            # Sorted, so that two processes lock the rows in the same order.
            deliveries, self._pending = sorted(self._pending), []
        try:
            for start in range(0, len(deliveries), _BATCH_SIZE):
                self._store.write(partial(_record, batch=deliveries[start : start + _BATCH_SIZE]))
        except Exception as error:  # for example at a shutdown; the agents' reports record the deliveries later
            _log.warning("delivery.not_recorded", error=f"{type(error).__name__}: {error}")


def _record(tx: Tx, batch: Sequence[deployments.Delivery]) -> None:
    deployments.record_deliveries(tx, batch)
    for delivery in batch:
        tx.notify(deployment_topic(delivery.deployment_id))
