"""
Removal of objects and queues whose resource no longer exists: the implementation of ``stoker db sweep``.

In normal operation, no orphans arise. They remain after the restore of a database backup, after a change to another
external service, or if an agent reports after its deployment was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stoker.backends.remote_object_controller import BackendDriver, apply
from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.objects import operations
from stoker.store import queues, remote_objects, site
from stoker.store.open import Store
from stoker.store.remote_objects import RemoteObject
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class CollectedObject:
    """An orphan that was found."""

    what: str
    #: Why the orphan was not removed; None: it was, or would be without ``dry_run``.
    problem: str | None = None


def collect(store: Store, drivers: Mapping[str, BackendDriver], *, dry_run: bool) -> Iterator[CollectedObject]:
    """Remove the orphans, and yield each orphan after its removal. ``dry_run``: remove nothing."""
    yield from _collect_embedded(store, dry_run)
    yield from _collect_remote(store, drivers, dry_run)
    for kind, driver in drivers.items():
        yield from _strays(store, kind, driver, dry_run)


def _collect_embedded(store: Store, dry_run: bool) -> Iterator[CollectedObject]:
    def do(tx: Tx) -> list[CollectedObject]:
        orphaned = []
        for queue in site.orphaned_queues(tx):
            orphaned.append(CollectedObject(f"queue {queue.name} of project {queue.project_id}"))
            if not dry_run:
                queues.delete(tx, queue.id)
        for account, name in site.orphaned_containers(tx):
            orphaned.append(CollectedObject(f"container {name} of project {account}"))
            if not dry_run:
                operations.delete_container_and_all(tx, account, name)
        for account, container, name in site.orphaned_objects(tx):
            orphaned.append(CollectedObject(f"object {container}/{name} of project {account}"))
            if not dry_run:
                operations.discard(tx, account, container, name)
        return orphaned

    yield from store.write(do)


def _collect_remote(store: Store, drivers: Mapping[str, BackendDriver], dry_run: bool) -> Iterator[CollectedObject]:
    with store.read() as tx:
        orphaned = remote_objects.orphans(tx)
    for orphan in orphaned:
        yield _remove(store, drivers.get(orphan.kind), orphan, dry_run)


def _remove(store: Store, driver: BackendDriver | None, orphan: RemoteObject, dry_run: bool) -> CollectedObject:
    description = f"{orphan.kind} {orphan.name} of project {orphan.project_id}, in an external service"
    if driver is None:
        return CollectedObject(description, f"the settings name no external service for a {orphan.kind}")
    if dry_run:
        return CollectedObject(description)

    def mark(tx: Tx) -> RemoteObject | None:
        remote_objects.mark_removed(tx, orphan.kind, orphan.name)
        return remote_objects.find(tx, orphan.id)

    removed = store.write(mark)
    try:
        if removed is not None:
            apply(store, driver, removed)
    except (ServiceUnavailable, ServiceRejected) as error:
        return CollectedObject(description, str(error))
    return CollectedObject(description)


def _strays(store: Store, kind: str, driver: BackendDriver, dry_run: bool) -> Iterator[CollectedObject]:
    """
    Remove objects in Stoker's own containers that the database does not know.

    The service is listed before the database is read, so that a new object is not mistaken for an orphan.
    """
    try:
        for names in driver.names():
            with store.read() as tx:
                recorded = set(remote_objects.list_known(tx, kind, names))
            for name in names:
                if name not in recorded:
                    if not dry_run:
                        driver.discard(name)
                    yield CollectedObject(f"{kind} {name}, in an external service, without a record")
    except (ServiceUnavailable, ServiceRejected) as error:
        yield CollectedObject(f"{kind}s of no record", str(error))
