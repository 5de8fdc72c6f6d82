"""The controller of one service's objects: calls the drivers; see ``reconciler.Controller``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import structlog

from stoker.failures import ServiceRejected, ServiceUnavailable, backoff
from stoker.model.stack import Status
from stoker.store.tx import Tx
from stoker_openstack.cloud.context import CloudContext
from stoker_openstack.cloud.drivers.base import Result, Run, act, await_state
from stoker_openstack.cloud.errors import INTERNAL_ERROR, CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.cloud.recorder import ERRORS, ERRORS_SINCE, INTERRUPTED, Recorder, Superseded
from stoker_openstack.model import CloudObject
from stoker_openstack.store import cloud_objects

#: An action fails after this many internal errors in succession that lasted this long: Nova answers so while it cannot
#: reach Neutron or Keystone.
_MOST_ERRORS, _LONGEST_ERRORS, _LONGEST_PAUSE = 5, timedelta(minutes=3), 10.0
#: Seconds until the second attempt after an outage.
_AFTER_OUTAGE = 2.0
_log = structlog.get_logger("stoker.backends")


class CloudController:
    """Applies the desired state of the objects that one service has."""

    def __init__(self, context: CloudContext, recorder: Recorder, service: str) -> None:
        self._context = context
        self._recorder = recorder
        self._service = service

    def prepare(self) -> None:
        """Check that the service answers, with the login of a pending object."""
        with self._context.store.read() as tx:
            ids = self.pending(tx)
            item = cloud_objects.find(tx, ids[0]) if ids else None
        if item is not None:
            with suppress(CloudFailure, RetryLater):  # the service has answered
                self._context.credentials.open(item.root_id).client.request(self._service, "GET", "/")

    def pending(self, tx: Tx) -> Sequence[str]:
        return cloud_objects.pending(tx, self._context.kinds_of(self._service))

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
            self._recorder.interrupt(item, error)
            raise
        except Exception as error:  # a defect, or an answer in no known form: it must not retry for ever
            _log.exception("cloud_object.error", object_id=id, kind=item.kind.value, action=item.action.value)
            text = f"Unexpected answer of the cloud, or a defect: {type(error).__name__}: {error}"
            self._fail_or_retry(item, CloudRefused(text, "Error", INTERNAL_ERROR), timedelta())
        else:
            self._recorder.record(item, result)

    def _act(self, item: CloudObject) -> Result:
        driver = self._context.drivers[item.kind]
        run = Run(
            object=item,
            noun=driver.noun,
            login=self._context.credentials.open(item.root_id),
            marker=Marker(self._context.site, item.id),
            store=partial(self._recorder.note, item),
            now=self._context.store.clock.now,
        )
        try:
            return act(driver, run)
        except CloudRefused as error:
            if driver.may_pass(run, error):
                await_state(run, error)
            raise

    def _fail_or_retry(self, item: CloudObject, error: CloudFailure, patience: timedelta = _LONGEST_ERRORS) -> None:
        """
        Fail the action; an internal error of the service fails it only after some attempts and this time.

        The first refusal after an outage does not fail it: Neutron answers its first requests before it has loaded its
        policies, and shows no networks to them.
        """
        with self._context.store.read() as tx:
            row = cloud_objects.find(tx, item.id)
            now = tx.now
        if not isinstance(error, CloudRefused) or error.status < INTERNAL_ERROR:
            if row is not None and row.progress.get(INTERRUPTED):
                later = RetryLater(f"Waiting: {error}", _AFTER_OUTAGE, is_rejected=True)
                self._recorder.retry(item, later, {INTERRUPTED: False})
            else:
                self._recorder.fail(item, error)
            return
        if row is None:
            return
        errors = int(row.progress.get(ERRORS, 0)) + 1
        since = str(row.progress.get(ERRORS_SINCE) or now.isoformat())
        if errors >= _MOST_ERRORS and now - datetime.fromisoformat(since) >= patience:
            self._recorder.fail(item, error)
        else:
            pause = backoff(errors, longest=_LONGEST_PAUSE)
            notes = {ERRORS: errors, ERRORS_SINCE: since}
            self._recorder.retry(item, RetryLater(f"Waiting: {error}", pause), notes)
