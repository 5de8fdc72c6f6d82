"""
The reconciler: jobs that bring the remote objects of an external service to their desired state.

A transaction records the desired state; a job applies it and retries until it succeeds. While a service is unreachable,
one job probes it; all pending remote objects wait for this job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

import structlog

from stoker.backends.result_polling import POLL, SOON, Result
from stoker.backends.service_client import ServiceRejected, ServiceUnavailable
from stoker.messaging.signed_urls import AGENTS_PERIOD, agents_until
from stoker.store import poll_schedule, remote_objects, resources, stacks
from stoker.store.open import Store
from stoker.store.remote_objects import RemoteObject
from stoker.store.tx import Tx
from stoker.transports.base import TransportTarget
from stoker.work import Work, backoff

#: Kinds of jobs: apply the desired state of one remote object, by its id; renew the signed URL of its agent; prepare
#: what all objects of a kind need.
RECONCILE, RENEW, PREPARE = "remote_object.reconcile", "remote_object.renew", "backend.prepare"
#: Key of a remote object's details: the signed URL of its resource's agent; None if the service does not sign URLs.
AGENT = "agent"
#: Margin after a URL's renewal time, so that this time has passed by the driver's clock, too.
_AFTER = timedelta(seconds=2)
#: Longest pauses in seconds: between retries of a rejected object, and between probes of an unreachable service.
_LONGEST, _LONGEST_AWAY = 60.0, 5.0
#: Limit of the jobs that one transaction defers.
_AT_ONCE = 200
_log = structlog.get_logger("stoker.backends")


class BackendDriver(Protocol):
    """
    Requests to one external service, called by jobs.

    All methods raise ServiceUnavailable if the service is unreachable, and ServiceRejected if an operator has to
    correct the cause. Example of a driver for a directory of files::

        class Files:
            def __init__(self, folder):
                self.folder = folder

            def prepare(self):
                self.folder.mkdir(exist_ok=True)

            def apply(self, remote_object):
                self.folder.joinpath(remote_object.name).write_text(remote_object.body or "")
                return {}

            def remove(self, remote_object):
                self.discard(remote_object.name)

            def close(self):
                pass

            def names(self):
                yield [path.name for path in self.folder.iterdir()]

            def discard(self, name):
                self.folder.joinpath(name).unlink(missing_ok=True)

            def poll(self, remote_object, since):
                return []  # agents return no results this way

            def acknowledge(self, remote_object, found):
                pass
    """

    def prepare(self) -> None:
        """Create what all remote objects need, such as a container."""

    def apply(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        """
        Apply the desired state, whatever an earlier attempt achieved. Returns the details to store with the object.
        """
        ...

    def remove(self, remote_object: RemoteObject) -> None:
        """Remove the object from the service. An object that does not exist is no error."""

    def close(self) -> None:
        """Close the connections. The driver is not used afterwards."""

    def names(self) -> Iterator[list[str]]:
        """Yield the names of the objects in places that belong to Stoker alone, in pages."""
        ...

    def discard(self, name: str) -> None:
        """Remove an object that ``names`` returned."""

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return the results since this time that were not stored yet, in their order."""
        ...

    def acknowledge(self, remote_object: RemoteObject, found: list[Result]) -> None:
        """Called after the results were stored in the database; may delete them from the service."""


class RemoteObjects:
    """Records the desired state of remote objects, inside transactions."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def open(
        self,
        tx: Tx,
        kind: str,
        name: str,
        target: TransportTarget,
        *,
        apply: bool = False,
        signed_method: str | None = None,
    ) -> None:
        """
        Record that the object shall exist.

        ``apply``: it must be created before use. ``signed_method``: the method for which a URL is to be signed.
        """
        by_itself = not apply and signed_method is None
        id, due = remote_objects.set_desired(
            tx, kind, name, target.project_id, target.resource_id, signed_method=signed_method, has_polling=by_itself
        )
        if due:
            self._reconcile(tx, id)

    def put(self, tx: Tx, kind: str, name: str, target: TransportTarget, body: str) -> None:
        """Record the object's new content. Only the latest content is applied, however many changes precede the job."""
        self._reconcile(tx, remote_objects.set_desired(tx, kind, name, target.project_id, target.resource_id, body)[0])

    def close(self, tx: Tx, kind: str, name: str) -> None:
        """Record that the object shall not exist."""
        id = remote_objects.mark_removed(tx, kind, name)
        if id is not None:
            self._reconcile(tx, id)

    def listen(self, tx: Tx, kind: str, name: str, until: datetime | None = None) -> None:
        """Poll the object for the result of the run that begins; with ``until``, poll for signals until that time."""
        at = tx.now + SOON
        poll_schedule.start(tx, kind, name, at, SOON, until)
        # Pending jobs are not cancelled: a steady stream of runs would postpone the polls indefinitely.
        self._work.defer(tx, POLL, kind, {"kind": kind}, at=at)

    def _reconcile(self, tx: Tx, id: str) -> None:
        self._work.defer_once(tx, RECONCILE, id, {"id": id})


class Reconciler:
    """The jobs that apply the desired state."""

    def __init__(
        self, store: Store, work: Work, drivers: Mapping[str, BackendDriver], on_signed: Callable[[Tx, str], None]
    ) -> None:
        """``on_signed`` is called with each resource whose agent's URL was signed or refused."""
        self._store = store
        self._work = work
        self._drivers = drivers
        self._on_signed = on_signed
        work.register(RECONCILE, self.reconcile)
        work.register(RENEW, self.renew)
        work.register(PREPARE, self.prepare)

    def start(self) -> None:
        """Prepare all services; called once at start-up."""

        def do(tx: Tx) -> None:
            for kind in self._drivers:
                self._again(tx, PREPARE, kind, {"kind": kind}, 0)

        self._store.write(do)

    def prepare(self, args: Mapping[str, Any]) -> None:
        """Prepare the service for one kind of objects, then apply the pending ones."""
        kind = args["kind"]
        if kind not in self._drivers:
            return
        try:
            self._drivers[kind].prepare()
        except (ServiceUnavailable, ServiceRejected) as error:
            tries = args.get("tries", 0) + 1
            pause = min(backoff(tries - 1), _LONGEST_AWAY if isinstance(error, ServiceUnavailable) else _LONGEST)
            _log.warning("reconcile.failed", job=f"{PREPARE}/{kind}", error=str(error), retry_seconds=pause)
            self._store.write(lambda tx: self._again(tx, PREPARE, kind, {**args, "tries": tries}, pause))
        else:
            self._reconcile_all(kind, args.get("failures", 0), args.get("pending", 0))

    def reconcile(self, args: Mapping[str, Any]) -> None:
        """Apply the desired state of one remote object."""
        with self._store.read() as tx:
            remote_object = remote_objects.find(tx, args["id"])
        if remote_object is None or remote_object.observed_generation == remote_object.desired_generation:
            return
        failures = args.get("failures", 0) + 1
        pause = min(backoff(failures - 1), _LONGEST)
        try:
            self._apply(remote_object)
        except ServiceUnavailable as error:
            _log.warning("reconcile.failed", job=f"{RECONCILE}/{remote_object.id}", error=str(error))
            until = {"kind": remote_object.kind, "failures": failures, "pending": args.get("pending", 0)}
            self._store.write(lambda tx: self._await(tx, until, pause))
        except ServiceRejected as error:
            _log.warning(
                "reconcile.failed", job=f"{RECONCILE}/{remote_object.id}", error=str(error), retry_seconds=pause
            )
            self._store.write(
                lambda tx: self._again(tx, RECONCILE, remote_object.id, {**args, "failures": failures}, pause)
            )

    def renew(self, args: Mapping[str, Any]) -> None:
        """Sign a new URL for the agent of a remote object."""

        def do(tx: Tx) -> None:
            if remote_objects.renew(tx, args["id"]):
                self._again(tx, RECONCILE, args["id"], {"id": args["id"]}, 0)

        self._store.write(do)

    def _await(self, tx: Tx, until: Mapping[str, Any], pause: float) -> None:
        """
        Defer the job that probes the service, unless one is pending. When the service answers, the job applies all
        pending objects.
        """
        if not self._work.is_pending(tx, PREPARE, until["kind"]):
            self._again(tx, PREPARE, until["kind"], until, pause)

    def _reconcile_all(self, kind: str, failures: int, pending: int) -> None:
        """
        Defer a job for each pending object.

        ``failures``: number of attempts without progress although the service answered. ``pending``: number of pending
        objects at the previous attempt.
        """

        def gather(tx: Tx) -> list[str]:
            # Cancelled before the query: an object that becomes pending afterwards finds no probe and defers a new one.
            self._work.cancel(tx, PREPARE, kind)
            return remote_objects.pending(tx, kind)

        def defer(tx: Tx, ids: Sequence[str]) -> None:
            for id in ids:
                self._again(tx, RECONCILE, id, {"id": id, **progress}, 0)

        found = self._store.write(gather)
        progress = {"failures": 0 if len(found) < pending else failures, "pending": len(found)}
        for start in range(0, len(found), _AT_ONCE):
            self._store.write(partial(defer, ids=found[start : start + _AT_ONCE]))

    def _again(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], pause: float) -> None:
        self._work.defer_once(tx, kind, key, args, at=tx.now + timedelta(seconds=pause) if pause else None)

    def _apply(self, remote_object: RemoteObject) -> None:
        """
        Apply the desired state. Notify the resource of a new signed URL, and schedule its renewal before it expires.
        """
        driver = self._driver(remote_object.kind)
        if remote_object.is_removed or remote_object.signed_method is None:
            apply(self._store, driver, remote_object)
            return
        details = driver.apply(remote_object)
        is_new = AGENT not in remote_object.details or details.get(AGENT) != remote_object.details[AGENT]

        def do(tx: Tx) -> None:
            _lock_stack(tx, remote_object.resource_id)
            remote_objects.set_observed(tx, remote_object, details)
            if remote_object.body is None:  # a document is published again long before the URL expires
                at = agents_until(remote_object.resource_id, tx.now) - 2 * AGENTS_PERIOD + _AFTER
                self._work.defer_once(tx, RENEW, remote_object.id, {"id": remote_object.id}, at=at)
            if is_new:
                self._on_signed(tx, remote_object.resource_id)

        self._store.write(do)

    def _driver(self, kind: str) -> BackendDriver:
        """
        Return the driver. Raises ServiceUnavailable if the settings no longer select an external service: they may
        change back.
        """
        if kind not in self._drivers:
            raise ServiceUnavailable(f"the settings name no place elsewhere where an {kind} could be")
        return self._drivers[kind]


def apply(store: Store, driver: BackendDriver, remote_object: RemoteObject) -> None:
    """Apply the desired state and record the result. Raises ServiceUnavailable and ServiceRejected."""
    if remote_object.is_removed:
        driver.remove(remote_object)
        store.write(lambda tx: remote_objects.delete(tx, remote_object))
    else:
        details = driver.apply(remote_object)
        store.write(lambda tx: remote_objects.set_observed(tx, remote_object, details))


def _lock_stack(tx: Tx, resource_id: str) -> None:
    """Lock the resource's stack before all other rows, as the lock order requires."""
    resource = resources.find(tx, resource_id)
    if resource is not None:
        stacks.find(tx, resource.stack_id, for_update=True)
