"""
Polling for results in an external Swift or Zaqar while runs wait for them.

One job polls many objects in turn: frequently after a run has begun, then at growing intervals while no result arrives.
Polling ends with the run. A Zaqar that notifies Stoker of new messages triggers the next poll at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog

from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.model.errors import Invalid, StokerError, Unavailable
from stoker.store import remote_objects
from stoker.store.open import Store
from stoker.store.remote_objects import Due, Polled, RemoteObject
from stoker.store.tx import Tx
from stoker.work import Work

if TYPE_CHECKING:
    from stoker.backends.remote_object_controller import BackendDriver

#: Kind of the job that polls for results; one job per kind of remote object.
POLL = "remote_object.poll"
SOON, LONGEST = timedelta(seconds=0.2), timedelta(seconds=30)
#: A result that is older than its run by at most this time is accepted, because clocks differ.
TOLERANCE = timedelta(seconds=2)
#: Growth of the interval while no result arrives. If the service notifies Stoker, polls only cover lost notifications.
_GROWTH, _GROWTH_WITH_CALLS = 1.5, 4.0
#: Limit of the objects that one job polls.
_AT_ONCE = 100
_log = structlog.get_logger("stoker.backends")


@dataclass(frozen=True, slots=True)
class Result:
    """A result; ``mark`` identifies it among the results of one remote object."""

    mark: str
    #: None: the result exceeds the size limit.
    data: bytes | None


#: Applies a result: (transaction, name of ``model.ids.remote_name``, data). Raises StokerError for an invalid result.
OnSignal = Callable[[Tx, str, bytes], None]


class ResultPoller:
    """The jobs that poll for results and apply them."""

    def __init__(self, store: Store, work: Work, drivers: Mapping[str, BackendDriver], on_signal: OnSignal) -> None:
        self._store = store
        self._work = work
        self._drivers = drivers
        self._on_signal = on_signal
        work.register(POLL, self.poll)

    def poll(self, args: Mapping[str, Any]) -> None:
        """Poll the objects of one kind that are due, and defer the next job."""
        kind = args["kind"]
        driver = self._drivers.get(kind)
        if driver is None:  # the settings no longer select an external service, but may change back
            self._store.write(lambda tx: self._work.defer(tx, POLL, kind, args, at=tx.now + LONGEST))
            return
        with self._store.read() as tx:
            due = remote_objects.due_polls(tx, kind, _AT_ONCE)
        done = [self._poll(driver, item) for item in due]

        def go_on(tx: Tx) -> None:
            self._work.cancel(tx, POLL, kind)
            remote_objects.record_polls(tx, done)
            following = remote_objects.next_poll(tx, kind)
            if following is not None:
                self._work.defer(tx, POLL, kind, {"kind": kind}, at=max(following, tx.now))

        self._store.write(go_on)

    def poll_now(self, resource_id: str) -> None:
        """Poll the resource's queue at once, because the service reported a new message."""

        def do(tx: Tx) -> None:
            if remote_objects.poll_now(tx, SOON, resource_id):
                self._work.defer(tx, POLL, remote_objects.QUEUE, {"kind": remote_objects.QUEUE})

        self._store.write(do)

    def _poll(self, driver: BackendDriver, due: Due) -> Polled:
        remote_object = due.remote_object
        if due.since is None:
            return Polled(remote_object, None)
        results: list[Result] = []
        try:
            results = driver.poll(remote_object, due.since)
            for result in results:
                self._take(remote_object, result)
            if results:
                driver.acknowledge(remote_object, results)
        except Unavailable:
            raise
        except (ServiceUnavailable, ServiceRejected) as error:
            _log.warning("result_poll.failed", resource_id=remote_object.resource_id, error=str(error))
        except Exception:  # the other objects of the kind belong to other clients, and are polled by the same job
            _log.exception("result_poll.failed", resource_id=remote_object.resource_id)
        if results:
            return Polled(remote_object, self._store.clock.now() + SOON, SOON)
        growth = _GROWTH_WITH_CALLS if remote_object.details.get("calls") else _GROWTH
        pause = min(remote_object.poll_interval * growth, LONGEST)
        return Polled(remote_object, self._store.clock.now() + pause, pause)

    def _take(self, remote_object: RemoteObject, result: Result) -> None:
        def do(tx: Tx) -> None:
            if result.data is None:
                raise Invalid("a result may have 16 MiB")
            self._on_signal(tx, remote_object.name.rpartition("/")[2], result.data)
            remote_objects.set_result(tx, result.mark, remote_object.id)

        try:
            self._store.write(do)
        except Unavailable:  # the database failed: the next poll returns the result again
            raise
        except StokerError as error:
            _log.warning("signal.rejected", resource_id=remote_object.resource_id, reason=error.message)
            self._skip(remote_object, result)
        except Exception:
            _log.exception("signal.rejected", resource_id=remote_object.resource_id, reason="internal error")
            self._skip(remote_object, result)

    def _skip(self, remote_object: RemoteObject, result: Result) -> None:
        """Record the result as processed, because it would fail again."""
        self._store.write(lambda tx: remote_objects.set_result(tx, result.mark, remote_object.id))
