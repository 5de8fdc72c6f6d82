"""Records the results of actions on a cloud's objects, and has what controllers and poller share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from msgspec.structs import replace

from stoker.backends.reconciler import JobKinds, request
from stoker.model.deployment import Owner
from stoker.model.stack import Status
from stoker.store import stacks
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.credentials import Credentials
from stoker_openstack.cloud.drivers.base import (
    ABANDONED,
    CONFLICT_SINCE,
    GIVEN_UP,
    SENT_AT,
    Done,
    Registry,
    Result,
    Wait,
)
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.late_objects import LateObjects
from stoker_openstack.cloud.refresh import Refresher
from stoker_openstack.model import CloudObject
from stoker_openstack.store import cloud_objects

#: The jobs of the reconciler for clouds, which have threads of their own, and the job that polls.
JOBS = JobKinds("cloud.reconcile", "cloud.prepare", threads=8)
POLL = "cloud.poll"
#: Keys of ``progress``: how often a service answered with an internal error in succession, and since when.
ERRORS, ERRORS_SINCE = "errors", "errors_since"
#: Key of ``progress``: a service did not answer, and none has refused a request since.
INTERRUPTED = "interrupted"
#: Keys of ``progress`` that a request with success removes.
_ENDED_BY_SUCCESS = (CONFLICT_SINCE, ERRORS, ERRORS_SINCE, INTERRUPTED)
#: The beginning of the reason of an action that waits for an unreachable service.
AWAITS_CLOUD = "Waiting for the cloud: "
#: Seconds until the first poll after a request.
FIRST_POLL = 1.0
_log = structlog.get_logger("stoker.backends")


@dataclass(frozen=True, slots=True)
class CloudContext:
    """What the controllers and the poller share."""

    store: Store
    work: Work
    credentials: Credentials
    registry: Registry
    #: The public id of this site.
    site: str
    late_objects: LateObjects
    refresher: Refresher

    def represent(self, row: CloudObject, observed: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the representation to store: a new one, or without one, the present one."""
        return row.observed if observed is None else self.registry.represent(row.kind, observed)


class Recorder:
    """Records the results of actions. Each call is one transaction, which also wakes the resource."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context

    def record(self, item: CloudObject, result: Result) -> None:
        """Record what a driver returned."""
        if isinstance(result, Wait):
            self._wait(item, result)
        elif result.is_gone:
            self._change(item, None)
        else:
            self.complete(item, result)

    def complete(self, item: CloudObject, result: Done) -> None:
        """Complete the action."""

        def change(row: CloudObject) -> CloudObject:
            return replace(
                row,
                status=Status.COMPLETE,
                reason="",
                observed=self._context.represent(row, result.observed),
                observed_generation=row.desired_generation,
                progress=_only(row.progress, GIVEN_UP),
                awaits=None,
                awaited_since=None,
            )

        self._change(item, change)

    def fail(self, item: CloudObject, error: CloudFailure) -> None:
        """Fail the action."""

        def change(row: CloudObject) -> CloudObject:
            # Only an internal error leaves unknown whether the service has created an object.
            is_unknown = isinstance(error, CloudRefused) and error.status >= 500 and SENT_AT in row.progress
            keys = (SENT_AT, GIVEN_UP, ABANDONED) if is_unknown else (GIVEN_UP, ABANDONED)
            return replace(
                row,
                status=Status.FAILED,
                reason=str(error),
                error_type=error.kind,
                observed=self._context.represent(row, error.observed),
                progress=_only(row.progress, *keys),
                awaits=None,
                awaited_since=None,
            )

        _log.info("cloud_object.failed", object_id=item.id, kind=item.kind.value, action=item.action.value)
        self._change(item, change)

    def retry(self, item: CloudObject, error: RetryLater, notes: Mapping[str, Any] | None = None) -> None:
        """Call the driver again after a pause, and say why."""

        def do(tx: Tx) -> None:
            row = self._lock(tx, item)
            if row is None:
                return
            progress = without_sent(row.progress) if error.is_rejected else row.progress
            changed = replace(row, reason=str(error), progress={**progress, **(notes or {})}, awaits=None)
            self._save(tx, row, changed)
            at = tx.now + timedelta(seconds=error.seconds)
            args = {"kind": self._context.registry.drivers[item.kind].noun.service, "id": item.id}
            self._context.work.defer_once(tx, JOBS.reconcile, item.id, args, at=at)

        self._context.store.write(do)

    def explain(self, item: CloudObject, reason: str) -> None:
        """State what the action waits for."""
        self._change(item, lambda row: replace(row, reason=reason))

    def interrupt(self, item: CloudObject, error: Exception) -> None:
        """State that the action waits for a service that does not answer."""

        def change(row: CloudObject) -> CloudObject:
            return replace(row, reason=f"{AWAITS_CLOUD}{error}", progress={**row.progress, INTERRUPTED: True})

        self._change(item, change)

    def request_driver(self, item: CloudObject) -> None:
        """Call the driver, because the polled state requires it."""

        def do(tx: Tx) -> None:
            row = self._lock(tx, item)
            if row is not None:
                cloud_objects.save(tx, replace(row, awaits=None, awaited_since=None))
                service = self._context.registry.drivers[item.kind].noun.service
                request(self._context.work, tx, service, item.id, JOBS)

        self._context.store.write(do)

    def _wait(self, item: CloudObject, result: Wait) -> None:
        def do(tx: Tx) -> None:
            row = self._lock(tx, item)
            if row is None:
                return
            changed = replace(
                row,
                reason=result.reason,
                observed=self._context.represent(row, result.observed),
                progress={
                    **{key: value for key, value in row.progress.items() if key not in _ENDED_BY_SUCCESS},
                    **({"polled_id": result.polled_id} if result.polled_id else {}),
                },
                awaits=result.source,
                awaited_since=tx.now,
            )
            self._save(tx, row, changed)
            scope = self._context.credentials.scope(item)
            self._context.work.defer_by(tx, POLL, scope, {"scope": scope}, tx.now + timedelta(seconds=FIRST_POLL))

        self._context.store.write(do)

    def _change(self, item: CloudObject, change: Callable[[CloudObject], CloudObject] | None) -> None:
        """Change the row if it still has the action; None deletes it. Wakes the resource if its view changes."""

        def do(tx: Tx) -> None:
            row = self._lock(tx, item)
            if row is None:
                return
            if change is None:
                cloud_objects.delete(tx, row.id)
                self._context.refresher.request(tx, row)
                tx.wake(Owner.resource(row.id))
                self._context.late_objects.expect(tx, row, is_deleted=True)
                self._context.credentials.end_unused(tx, row.root_id)
            else:
                changed = change(row)
                self._save(tx, row, changed)
                if changed.status is Status.COMPLETE:
                    self._context.refresher.request(tx, row)

        self._context.store.write(do)

    def _save(self, tx: Tx, row: CloudObject, changed: CloudObject) -> None:
        cloud_objects.save(tx, changed)
        if (row.status, row.reason) != (changed.status, changed.reason):
            tx.wake(Owner.resource(row.id))

    def _lock(self, tx: Tx, item: CloudObject) -> CloudObject | None:
        """Lock the stack, then the row; None if a newer request replaced the action."""
        stacks.find(tx, item.root_id, for_update=True)
        row = cloud_objects.find(tx, item.id, for_update=True)
        if row is None or row.desired_generation != item.desired_generation or row.status is not Status.IN_PROGRESS:
            return None
        return row


def without_sent(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes without that of a create request that was sent."""
    return {key: value for key, value in progress.items() if key != SENT_AT}


def _only(progress: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: progress[key] for key in keys if key in progress}
