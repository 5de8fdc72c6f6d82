"""
Removal of objects at the cloud that carry this site's marker and have no row: the cloud's part of ``stoker db sweep``.

Each list is read before the rows, so that a new object is not mistaken for an orphan: its row is older than it is.
Objects that outlive their resource on purpose (``deletion_policy: Retain``) have a marker and no row; they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from stoker.backends.garbage_collector import CollectedObject
from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.store.open import Store
from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.credentials import SiteCredentials
from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials
from stoker_openstack.cloud.errors import CloudFailure, RetryLater
from stoker_openstack.cloud.nouns import NOUNS, SWEPT, Noun
from stoker_openstack.store import cloud_objects, delegations

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
        title = credentials.keystone.ways[used.way].title
        what = f"{title} of user {used.user_id} in project {used.project_id} for a deleted stack"
        yield _attempt(what, partial(credentials.keystone.revoke, delegation), dry_run=dry_run)
    yield from _collect_trusts(store, credentials, dry_run)


def _collect_trusts(store: Store, credentials: DelegatedCredentials, dry_run: bool) -> Iterator[CollectedObject]:
    """Delete trusts that the database does not know. A job revokes those whose delegation it knows."""
    try:
        trusts = list(credentials.keystone.trusts.list_all())
    except _ERRORS as error:
        yield CollectedObject("trusts at Keystone", str(error))
        return
    with store.read() as tx:
        recorded = set(delegations.credential_ids(tx))
    for trust_id, credential_id in trusts:
        if credential_id not in recorded:
            what = f"trust {trust_id} of no stack at Keystone"
            yield _attempt(what, partial(credentials.keystone.trusts.delete_trust, trust_id), dry_run=dry_run)


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
