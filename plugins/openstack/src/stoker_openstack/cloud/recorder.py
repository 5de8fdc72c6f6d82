"""Records the results of actions on a cloud's objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from msgspec.structs import replace

from stoker.model.deployment import Owner
from stoker.model.stack import Status
from stoker.store import stacks
from stoker.store.tx import Tx
from stoker_openstack.cloud.context import CloudContext
from stoker_openstack.cloud.drivers.base import (
    ABANDONED,
    CONFLICT_SINCE,
    GIVEN_UP,
    SENT_AT,
    Done,
    Result,
    Wait,
)
from stoker_openstack.cloud.errors import INTERNAL_ERROR, CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.orphans import LateObjects
from stoker_openstack.model import OWN_PREFIX, CloudObject
from stoker_openstack.store import cloud_objects

if TYPE_CHECKING:
    from stoker_openstack.cloud.polling import Refresher

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


#: Applies a result to the row of an object; None: the transaction has deleted the row.
Change = Callable[[Tx, CloudObject], CloudObject | None]


class Superseded(Exception):
    """A newer request replaced the action; its job follows."""


class Recorder:
    """Records the results of actions. Each call is one transaction, which also wakes the resource."""

    def __init__(self, context: CloudContext, late_objects: LateObjects, refresher: Refresher) -> None:
        self._context = context
        self._late_objects = late_objects
        self._refresher = refresher

    def record(self, item: CloudObject, result: Result) -> None:
        """Record what a driver returned."""
        if isinstance(result, Wait):
            self._wait(item, result)
        elif result.is_gone:
            self._change(item, self._remove)
        else:
            self.complete(item, result)

    def complete(self, item: CloudObject, result: Done) -> None:
        """Complete the action."""

        def change(tx: Tx, row: CloudObject) -> CloudObject:
            generation = row.desired_generation
            ended = self._end(row, result.observed, status=Status.COMPLETE, reason="", observed_generation=generation)
            self._refresher.request(tx, ended)
            return ended

        self._change(item, change)

    def fail(self, item: CloudObject, error: CloudFailure) -> None:
        """Fail the action."""

        def change(_: Tx, row: CloudObject) -> CloudObject:
            # Only an internal error leaves unknown whether the service has created an object.
            is_unknown = isinstance(error, CloudRefused) and error.status >= INTERNAL_ERROR
            notes = (ABANDONED, SENT_AT) if is_unknown else (ABANDONED,)
            reason, error_type = str(error), error.kind
            return self._end(row, error.observed, notes, status=Status.FAILED, reason=reason, error_type=error_type)

        _log.info("cloud_object.failed", object_id=item.id, kind=item.kind.value, action=item.action.value)
        self._change(item, change)

    def retry(self, item: CloudObject, error: RetryLater, notes: Mapping[str, Any] | None = None) -> None:
        """Call the driver again after a pause, and say why."""

        def change(tx: Tx, row: CloudObject) -> CloudObject:
            self._context.request_driver(tx, row, tx.now + timedelta(seconds=error.seconds))
            progress = _without_sent(row.progress) if error.is_rejected else row.progress
            return replace(row, reason=str(error), progress={**progress, **(notes or {})}, awaits=None)

        self._change(item, change)

    def explain(self, item: CloudObject, reason: str) -> None:
        """State what the action waits for."""
        self._change(item, lambda _, row: replace(row, reason=reason))

    def interrupt(self, item: CloudObject, error: Exception) -> None:
        """State that the action waits for a service that does not answer."""

        def change(_: Tx, row: CloudObject) -> CloudObject:
            return replace(row, reason=f"{AWAITS_CLOUD}{error}", progress={**row.progress, INTERRUPTED: True})

        self._change(item, change)

    def request_driver(self, item: CloudObject) -> None:
        """Call the driver, because the polled state requires it."""

        def change(tx: Tx, row: CloudObject) -> CloudObject:
            self._context.request_driver(tx, row)
            return replace(row, awaits=None, awaited_since=None)

        self._change(item, change)

    def note(
        self,
        item: CloudObject,
        external_id: str | None,
        observed: Mapping[str, Any] | None,
        progress: Mapping[str, Any],
    ) -> CloudObject:
        """
        Store a driver's note at once; see ``drivers.base.Run``.

        An id that the cloud gave is stored even if a newer request exists. Raises Superseded in this case.
        """

        def do(tx: Tx) -> CloudObject | None:
            row = cloud_objects.find(tx, item.id, for_update=True)
            is_current = row is not None and row.desired_generation == item.desired_generation
            if row is None or (external_id is None and not is_current):
                return None
            changed = replace(
                row,
                external_id=external_id or row.external_id,
                observed=self._represent(row, observed),
                progress=progress if is_current else _without_sent(row.progress),
            )
            cloud_objects.save(tx, changed)
            if changed.progress.get(GIVEN_UP) != row.progress.get(GIVEN_UP):
                self._late_objects.expect(tx, changed)
            return changed if is_current else None

        changed = self._context.store.write(do)
        if changed is None:
            raise Superseded
        return changed

    def _wait(self, item: CloudObject, result: Wait) -> None:
        def change(tx: Tx, row: CloudObject) -> CloudObject:
            self._context.defer_poll(tx, row, tx.now + timedelta(seconds=FIRST_POLL))
            lasting = {key: value for key, value in row.progress.items() if key not in _ENDED_BY_SUCCESS}
            return replace(
                row,
                reason=result.reason,
                observed=self._represent(row, result.observed),
                progress={**lasting, **({"polled_id": result.polled_id} if result.polled_id else {})},
                awaits=result.source,
                awaited_since=tx.now,
            )

        self._change(item, change)

    def _remove(self, tx: Tx, row: CloudObject) -> None:
        cloud_objects.delete(tx, row.id)
        self._refresher.request(tx, row)
        tx.wake(Owner.resource(row.id))
        self._late_objects.expect(tx, row)
        self._context.credentials.end_unused(tx, row.root_id)

    def _change(self, item: CloudObject, change: Change) -> None:
        """
        Change the row unless a newer request has replaced the action, and wake the resource if its view changes. Locks
        the stack, then the row.
        """

        def do(tx: Tx) -> None:
            stacks.find(tx, item.root_id, for_update=True)
            row = cloud_objects.find(tx, item.id, for_update=True)
            is_current = row is not None and row.desired_generation == item.desired_generation
            if row is None or not is_current or row.status is not Status.IN_PROGRESS:
                return
            changed = change(tx, row)
            if changed is not None:
                cloud_objects.save(tx, changed)
                if (row.status, row.reason) != (changed.status, changed.reason):
                    tx.wake(Owner.resource(row.id))

        self._context.store.write(do)

    def _end(
        self, row: CloudObject, observed: Mapping[str, Any] | None, notes: Collection[str] = (), **changes: Any
    ) -> CloudObject:
        """Return the row of an action that has ended, with those of its notes that outlast it."""
        progress = {key: value for key, value in row.progress.items() if key in (GIVEN_UP, *notes)}
        observed = self._represent(row, observed)
        return replace(row, observed=observed, progress=progress, awaits=None, awaited_since=None, **changes)

    def _represent(self, row: CloudObject, observed: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the representation to store: a new one with Stoker's own keys, or without one, the present one."""
        if observed is None:
            return row.observed
        own = {key: value for key, value in row.observed.items() if key.startswith(OWN_PREFIX)}
        return self._context.represent(row.kind, {**own, **observed})


def _without_sent(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes without that of a create request that was sent."""
    return {key: value for key, value in progress.items() if key != SENT_AT}
