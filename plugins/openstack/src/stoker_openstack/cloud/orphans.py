"""
Removal of objects at the cloud that carry this site's marker and that no resource has: late objects, and those that
``stoker db sweep`` finds.

Late objects are those that a service creates after Stoker has given up the result of the create request. A service may
hold a create request longer than Stoker waits for the answer, and carry it out after Stoker has sent another one, or
has deleted the resource. After a request was given up, a job therefore searches four times within an hour for objects
with the marker of the resource, and deletes all but the one that the resource has.

Each list is read before the rows, so that a new object is not mistaken for an orphan: its row is older than it is.
Objects that outlive their resource on purpose (``deletion_policy: Retain``) have a marker and no row; they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import asdict, replace

from stoker.backends.garbage_collector import CollectedObject
from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.model.stack import Status
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.context import LATE_OBJECTS, CloudContext
from stoker_openstack.cloud.credentials import SiteCredentials
from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials
from stoker_openstack.cloud.drivers.base import GIVEN_UP, SENT_AT
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.nouns import NOUNS, SWEPT, Noun
from stoker_openstack.model import CloudObject
from stoker_openstack.store import cloud_objects, delegations

#: When the job for late objects searches, as times since the request was given up.
_SEARCH_TIMES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
#: The pause after an attempt that says nothing, and the time since the request after which none is made.
_PAUSE, _LONGEST = timedelta(minutes=1), timedelta(days=1)
_log = structlog.get_logger("stoker.backends")


class _Search(Struct, frozen=True):
    """The arguments of a job. ``rounds``: earlier searches."""

    id: str
    kind: str
    root_id: str
    given_up: str
    rounds: int = 0


class LateObjects:
    """Defers and runs the jobs."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context
        context.work.register(LATE_OBJECTS, self.delete, threads=1)

    def expect(self, tx: Tx, item: CloudObject) -> None:
        """Search for late objects of a resource if a create request was given up in the last hour."""
        given_up = item.progress.get(GIVEN_UP)
        if given_up is None or item.kind not in SWEPT:
            return
        search = _Search(item.id, item.kind.value, item.root_id, given_up)
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
            is_retained = cloud_objects.is_retained(tx, search.id)
        if is_retained:
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
        is_retained = cloud_objects.is_retained(tx, search.id)
        if is_retained or rounds >= len(_SEARCH_TIMES) or tx.now - given_up > _LONGEST:
            self._context.credentials.end_unused(tx, search.root_id)
        else:
            at = given_up + _SEARCH_TIMES[rounds] if is_conclusive else tx.now + _PAUSE
            self._defer(tx, replace(search, rounds=rounds), max(at, tx.now + _PAUSE))

    def _defer(self, tx: Tx, search: _Search, at: datetime) -> None:
        self._context.work.defer(tx, LATE_OBJECTS, search.root_id, asdict(search), at=at)


_ERRORS = (CloudFailure, RetryLater, ServiceRejected, ServiceUnavailable)


def collect_all(
    store: Store, credentials: SiteCredentials | DelegatedCredentials, site: str, dry_run: bool
) -> Iterator[CollectedObject]:
    """Delete the orphans of all projects of the credentials, and trusts of no stack; see ``collect``."""
    if isinstance(credentials, DelegatedCredentials):
        yield from _collect_delegated(store, credentials, site, dry_run=dry_run)
    else:
        yield from collect(store, credentials.login.client, site, dry_run=dry_run)


def collect(store: Store, client: CloudClient, site: str, *, dry_run: bool) -> Iterator[CollectedObject]:
    """Delete the objects, and yield each one. ``site`` is the public id of this site; ``dry_run``: delete nothing."""
    for kind in SWEPT:
        noun, word = NOUNS[kind], kind.replace("_ip", " IP").replace("_", " ")
        try:
            orphans = _orphans(store, client, noun, site)
        except _ERRORS as error:
            yield CollectedObject(f"{word}s of the cloud {client.name}", str(error))
            continue
        for item in orphans:
            description = f"{word} {item.get('name') or ''} ({item['id']}) of the cloud {client.name}"
            yield _attempt(description, partial(noun.delete_whole, client, str(item["id"])), dry_run=dry_run)


def _collect_delegated(
    store: Store, credentials: DelegatedCredentials, site: str, *, dry_run: bool
) -> Iterator[CollectedObject]:
    """
    Delete the orphans in the projects that Stoker enters for the owners of stacks, then trusts of no stack.

    The arguments and the result are those of ``collect``.
    """
    with store.read() as tx:
        by_project = {item.project_id: item for item in delegations.credentials_in_use(tx)}
    for credential in by_project.values():
        yield from collect(store, credentials.open_credential(credential).client, site, dry_run=dry_run)
    with store.read() as tx:
        unused = delegations.unused(tx)
        by_id = {item.id: item for item in delegations.credentials_in_use(tx)}
    for delegation in unused:
        used = by_id[delegation.credential_id]
        title = credentials.ways[used.way].title
        what = f"{title} of user {used.user_id} in project {used.project_id} for a deleted stack"
        yield _attempt(what, partial(credentials.revoke, delegation), dry_run=dry_run)
    yield from _collect_trusts(store, credentials, dry_run)


def _collect_trusts(store: Store, credentials: DelegatedCredentials, dry_run: bool) -> Iterator[CollectedObject]:
    """Delete trusts that the database does not know. A job revokes those whose delegation it knows."""
    try:
        trusts = list(credentials.trusts.list_all())
    except _ERRORS as error:
        yield CollectedObject("trusts at Keystone", str(error))
        return
    with store.read() as tx:
        recorded = set(delegations.credential_ids(tx))
    for trust_id, credential_id in trusts:
        if credential_id not in recorded:
            what = f"trust {trust_id} of no stack at Keystone"
            yield _attempt(what, partial(credentials.trusts.delete_trust, trust_id), dry_run=dry_run)


def _attempt(what: str, delete: Callable[[], str | None], *, dry_run: bool) -> CollectedObject:
    """Call ``delete``, which returns why something remains, and return what ``collect`` yields."""
    try:
        return CollectedObject(what, None if dry_run else delete())
    except _ERRORS as error:
        return CollectedObject(what, str(error))


def _orphans(store: Store, client: CloudClient, noun: Noun, site: str) -> list[dict[str, Any]]:
    marked = list(noun.list_marked(client, site))
    with store.read() as tx:
        present = set(cloud_objects.known_ids(tx, {resource_id for resource_id, _ in marked}))
    return [item for resource_id, item in marked if resource_id not in present]
