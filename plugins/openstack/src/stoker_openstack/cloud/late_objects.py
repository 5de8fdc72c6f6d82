"""
Late objects: those that a service creates after Stoker has given up the result of the create request.

A service may hold a create request longer than Stoker waits for the answer, and carry it out after Stoker has sent
another one, or has deleted the resource. After a request was given up, a job therefore searches four times within an
hour for objects with the marker of the resource, and deletes all but the one that the resource has.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import asdict, replace

from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.model.stack import Status
from stoker.store.tx import Tx
from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.context import CloudContext
from stoker_openstack.cloud.drivers.base import GIVEN_UP, SENT_AT
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.nouns import NOUNS, SWEPT
from stoker_openstack.model import CloudObject
from stoker_openstack.store import cloud_objects

#: The kind of the jobs. The key is the id of the root stack, whose credentials a job needs.
LATE_OBJECTS = "cloud.late_objects"
#: When the job searches, as times since the request was given up.
_SEARCH_TIMES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
#: The pause after an attempt that says nothing, and the time since the request after which none is made.
_PAUSE, _LONGEST = timedelta(minutes=1), timedelta(days=1)
_log = structlog.get_logger("stoker.backends")


class _Search(Struct, frozen=True):
    """
    The arguments of a job. ``is_deleted``: the object of the resource was deleted; ``rounds``: earlier searches.
    """

    id: str
    kind: str
    root_id: str
    given_up: str
    is_deleted: bool
    rounds: int = 0

    @property
    def args(self) -> dict[str, Any]:
        return asdict(self)


class LateObjects:
    """Defers and runs the jobs."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context
        context.work.register(LATE_OBJECTS, self.delete, threads=1)

    def expect(self, tx: Tx, item: CloudObject, *, is_deleted: bool = False) -> None:
        """
        Search for late objects of a resource if a create request was given up in the last hour.

        ``is_deleted``: the row was just deleted with its object. Objects whose row was only dropped are kept.
        """
        given_up = item.progress.get(GIVEN_UP)
        if given_up is None or item.kind not in SWEPT:
            return
        search = _Search(item.id, item.kind.value, item.root_id, given_up, is_deleted)
        if tx.now - datetime.fromisoformat(given_up) < _SEARCH_TIMES[-1]:
            self._defer(tx, search, tx.now + _SEARCH_TIMES[0])

    def delete(self, args: Mapping[str, Any]) -> None:
        """Job: delete the late objects of a resource, and defer the next round."""
        search = _Search(**args)
        try:
            is_conclusive = self._delete(search)
        except (ServiceUnavailable, ServiceRejected, RetryLater) as error:
            _log.info("late_objects.unknown", object_id=search.id, error=str(error))
            is_conclusive = False
        except CloudFailure as error:  # without credentials, no later round would succeed
            _log.warning("late_objects.failed", object_id=search.id, error=str(error))
            is_conclusive = False
            search = search if isinstance(error, CloudRefused) else replace(search, rounds=len(_SEARCH_TIMES))
        self._context.store.write(lambda tx: self._continue(tx, search, is_conclusive))

    def _delete(self, search: _Search) -> bool:
        """Return whether the row showed which objects are late. The row is read after the list, as in a sweep."""
        client = self._context.credentials.open(search.root_id).client
        listed = [item for id, item in NOUNS[search.kind].list_marked(client, self._context.site) if id == search.id]
        with self._context.store.read() as tx:
            row = cloud_objects.find(tx, search.id)
        if row is None and not search.is_deleted:
            return True
        if row is not None and SENT_AT in row.progress:  # its result is not known yet
            return row.status is not Status.IN_PROGRESS
        for item in listed:
            if row is None or item["id"] != row.external_id:
                self._delete_one(search, client, str(item["id"]))
        return True

    def _delete_one(self, search: _Search, client: CloudClient, id: str) -> None:
        try:
            NOUNS[search.kind].delete_whole(client, id)
            _log.warning("late_objects.deleted", object_id=search.id, external_id=id)
        except CloudRefused as error:  # the next round tries again
            _log.warning("late_objects.kept", object_id=search.id, external_id=id, error=str(error))

    def _continue(self, tx: Tx, search: _Search, is_conclusive: bool) -> None:
        given_up = datetime.fromisoformat(search.given_up)
        rounds = search.rounds + is_conclusive
        is_superseded = not search.is_deleted and cloud_objects.find(tx, search.id) is None
        if is_superseded or rounds >= len(_SEARCH_TIMES) or tx.now - given_up > _LONGEST:
            self._context.credentials.end_unused(tx, search.root_id)
        else:
            at = given_up + _SEARCH_TIMES[rounds] if is_conclusive else tx.now + _PAUSE
            self._defer(tx, replace(search, rounds=rounds), max(at, tx.now + _PAUSE))

    def _defer(self, tx: Tx, search: _Search, at: datetime) -> None:
        self._context.work.defer(tx, LATE_OBJECTS, search.root_id, search.args, at=at)
