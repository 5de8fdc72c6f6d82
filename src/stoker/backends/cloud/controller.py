"""
The controller of one service's objects: calls the drivers and records the results; see ``reconciler.Controller``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from stoker.backends.cloud.credentials import Credentials
from stoker.backends.cloud.drivers.base import ABANDONED, CONFLICT_SINCE, SENT_AT, Done, Registry, Result, Run, Wait
from stoker.backends.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker.backends.cloud.markers import Marker
from stoker.backends.reconciler import JobKinds
from stoker.backoff import backoff
from stoker.circuit_breaker import ServiceRejected, ServiceUnavailable
from stoker.model.cloud import CloudObject
from stoker.model.status import Status
from stoker.store import cloud_objects, stacks
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

#: The jobs of the reconciler for clouds, which have threads of their own, and the job that polls.
JOBS = JobKinds("cloud.reconcile", "cloud.prepare", threads=8)
POLL = "cloud.poll"
#: Key of ``progress``: how often a service answered with an internal error, and after how many the action fails.
_ERRORS, _MOST_ERRORS = "errors", 5
_INTERNAL_ERROR = 500
#: The beginning of the reason of an action that waits for an unreachable service.
AWAITS_CLOUD = "Waiting for the cloud: "
#: Seconds until the first poll after a request.
FIRST_POLL = 1.0
_log = structlog.get_logger("stoker.backends")
#: Checks a resource: (transaction, resource id).
OnSettled = Callable[[Tx, str], None]


class Superseded(Exception):
    """A newer request replaced the action; its job follows."""


@dataclass(frozen=True, slots=True)
class CloudContext:
    """What the controllers and the poller share."""

    store: Store
    work: Work
    credentials: Credentials
    registry: Registry
    #: The public id of this site.
    site: str
    on_settled: OnSettled

    def represent(self, row: CloudObject, observed: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the representation to store: a new one, or without one, the present one."""
        return row.observed if observed is None else self.registry.drivers[row.kind].represent(observed)


class CloudController:
    """Applies the desired state of the objects that one service has."""

    def __init__(self, context: CloudContext, service: str) -> None:
        self._context = context
        self._service = service
        self._recorder = Recorder(context)

    def prepare(self) -> None:
        """Check that the service answers, with the login of a pending object."""
        with self._context.store.read() as tx:
            ids = self.pending(tx)
            item = cloud_objects.find(tx, ids[0]) if ids else None
        if item is not None:
            with suppress(CloudFailure, RetryLater):  # the service has answered
                self._context.credentials.open(item).client.request(self._service, "GET", "/")

    def pending(self, tx: Tx) -> Sequence[str]:
        return cloud_objects.pending(tx, self._context.registry.of_service(self._service))

    def reconcile(self, id: str, rejections: int) -> None:
        """Continue the action of an object."""
        with self._context.store.read() as tx:
            item = cloud_objects.find(tx, id)
        if item is None or item.status is not Status.IN_PROGRESS:
            return
        try:
            result = self._act(item)
        except Superseded:
            return
        except RetryLater as error:
            self._recorder.retry(item, error)
        except CloudFailure as error:
            self._fail_or_retry(item, error)
        except (ServiceUnavailable, ServiceRejected) as error:
            self._recorder.explain(item, f"{AWAITS_CLOUD}{error}")
            raise
        except Exception as error:  # a defect, or an answer in no known form: it must not retry for ever
            _log.exception("cloud_object.error", object_id=id, kind=item.kind.value, action=item.action.value)
            text = f"Unexpected answer of the cloud, or a defect: {type(error).__name__}: {error}"
            self._fail_or_retry(item, CloudRefused(text, "Error", _INTERNAL_ERROR))
        else:
            self._recorder.record(item, result)

    def _act(self, item: CloudObject) -> Result:
        access = self._context.credentials.open(item)
        run = Run(
            object=item,
            client=access.client,
            names=access.names,
            marker=Marker(self._context.site, item.id),
            store=partial(self._store, item),
        )
        return self._context.registry.drivers[item.kind].act(run)

    def _store(
        self,
        item: CloudObject,
        external_id: str | None,
        observed: Mapping[str, Any] | None,
        progress: Mapping[str, Any],
    ) -> CloudObject:
        """
        Store a driver's note at once.

        An id that the cloud gave is stored even if a newer request exists. Raises Superseded in this case.
        """

        def do(tx: Tx) -> tuple[CloudObject | None, bool]:
            row = cloud_objects.find(tx, item.id, for_update=True)
            if row is None:
                return None, False
            is_current = row.desired_generation == item.desired_generation
            if external_id is None and not is_current:
                return row, False
            changed = replace(
                row,
                external_id=external_id or row.external_id,
                observed=self._context.represent(row, observed),
                progress=progress if is_current else _without_sent(row.progress),
            )
            cloud_objects.save(tx, changed)
            return changed, is_current

        row, is_current = self._context.store.write(do)
        if row is None or not is_current:
            raise Superseded
        return row

    def _fail_or_retry(self, item: CloudObject, error: CloudFailure) -> None:
        """Fail the action; an internal error of the service fails it only after some attempts."""
        with self._context.store.read() as tx:
            row = cloud_objects.find(tx, item.id)
        errors = int(row.progress.get(_ERRORS, 0)) + 1 if row else _MOST_ERRORS
        if isinstance(error, CloudRefused) and error.status >= 500 and errors < _MOST_ERRORS:
            self._recorder.retry(item, RetryLater(f"Waiting: {error}", backoff(errors)), {_ERRORS: errors})
        else:
            self._recorder.fail(item, error)


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
                progress={},
                awaits=None,
                awaited_since=None,
            )

        self._change(item, change)

    def fail(self, item: CloudObject, error: CloudFailure) -> None:
        """Fail the action."""

        def change(row: CloudObject) -> CloudObject:
            # Only an internal error leaves unknown whether the service has created an object.
            is_unknown = isinstance(error, CloudRefused) and error.status >= 500 and SENT_AT in row.progress
            keys = (SENT_AT, ABANDONED) if is_unknown else (ABANDONED,)
            return replace(
                row,
                status=Status.FAILED,
                reason=str(error),
                error_type=error.kind,
                observed=self._context.represent(row, error.observed),
                progress={key: row.progress[key] for key in keys if key in row.progress},
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
            progress = _without_sent(row.progress) if error.is_rejected else row.progress
            changed = replace(row, reason=str(error), progress={**progress, **(notes or {})}, awaits=None)
            self._save(tx, row, changed)
            at = tx.now + timedelta(seconds=error.seconds)
            args = {"kind": self._context.registry.drivers[item.kind].service, "id": item.id}
            self._context.work.defer_once(tx, JOBS.reconcile, item.id, args, at=at)

        self._context.store.write(do)

    def explain(self, item: CloudObject, reason: str) -> None:
        """State what the action waits for."""
        self._change(item, lambda row: replace(row, reason=reason))

    def request_driver(self, item: CloudObject) -> None:
        """Call the driver, because the polled state requires it."""

        def do(tx: Tx) -> None:
            row = self._lock(tx, item)
            if row is not None:
                cloud_objects.save(tx, replace(row, awaits=None, awaited_since=None))
                args = {"kind": self._context.registry.drivers[item.kind].service, "id": item.id}
                self._context.work.defer_once(tx, JOBS.reconcile, item.id, args)

        self._context.store.write(do)

    def _wait(self, item: CloudObject, result: Wait) -> None:
        scope = self._context.credentials.scope(item)

        def do(tx: Tx) -> None:
            row = self._lock(tx, item)
            if row is None:
                return
            changed = replace(
                row,
                reason=result.reason,
                observed=self._context.represent(row, result.observed),
                progress={
                    **{key: value for key, value in row.progress.items() if key not in (CONFLICT_SINCE, _ERRORS)},
                    **({"polled_id": result.polled_id} if result.polled_id else {}),
                },
                awaits=result.source,
                awaited_since=tx.now,
            )
            self._save(tx, row, changed)
            at = tx.now + timedelta(seconds=FIRST_POLL)
            self._context.work.defer_by(tx, POLL, scope, {"scope": scope}, at)

        self._context.store.write(do)

    def _change(self, item: CloudObject, change: Callable[[CloudObject], CloudObject] | None) -> None:
        """Change the row if it still has the action; None deletes it. Wakes the resource if its view changes."""

        def do(tx: Tx) -> None:
            row = self._lock(tx, item)
            if row is None:
                return
            if change is None:
                cloud_objects.delete(tx, row.id)
                self._context.on_settled(tx, row.id)
                self._context.credentials.object_deleted(tx, row)
            else:
                self._save(tx, row, change(row))

        self._context.store.write(do)

    def _save(self, tx: Tx, row: CloudObject, changed: CloudObject) -> None:
        cloud_objects.save(tx, changed)
        if (row.status, row.reason) != (changed.status, changed.reason):
            self._context.on_settled(tx, row.id)

    def _lock(self, tx: Tx, item: CloudObject) -> CloudObject | None:
        """Lock the stack, then the row; None if a newer request replaced the action."""
        stacks.find(tx, item.root_id, for_update=True)
        row = cloud_objects.find(tx, item.id, for_update=True)
        if row is None or row.desired_generation != item.desired_generation or row.status is not Status.IN_PROGRESS:
            return None
        return row


def _without_sent(progress: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in progress.items() if key != SENT_AT}
