"""
Notes which runs an agent was told of: after it was answered, many at a time, and never in its way.

What a process that is killed had not noted yet is noted when the agent first says something of the run.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from stoker.store import runs
from stoker.store.bell import deployment_topic
from stoker.store.open import Store
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.deployments")
_GATHERED_SECONDS = 0.05
#: A transaction's share, so that no other writer waits for long.
_AT_ONCE = 500

#: (deployment id, derived config's id) of runs.
News = Sequence[tuple[str, str]]


class Delivering:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._pending: list[runs.Delivery] = []

    def delivered(self, news: News, channel: str) -> None:
        """At this moment, by that transport. Without I/O."""
        now = datetime.now(UTC)
        with self._lock:
            waiting = bool(self._pending)
            self._pending += [runs.Delivery(*run, channel, now) for run in news]
        if not waiting:
            timer = threading.Timer(_GATHERED_SECONDS, self._note)
            timer.daemon = True
            timer.start()

    def _note(self) -> None:
        with self._lock:
            # In one order, so that two processes never wait for each other.
            found, self._pending = sorted(self._pending), []
        try:
            for start in range(0, len(found), _AT_ONCE):
                share = found[start : start + _AT_ONCE]
                self._store.write(lambda tx, share=share: _deliver(tx, share))  # type: ignore[misc]
        except Exception as error:  # the server is stopping, say: what is lost here is noted later
            _log.warning("what was delivered is not noted", error=f"{type(error).__name__}: {error}")


def _deliver(tx: Tx, share: Sequence[runs.Delivery]) -> None:
    runs.deliver(tx, share)
    for each in share:
        tx.ring(deployment_topic(each.deployment_id))
