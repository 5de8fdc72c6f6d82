"""
Refreshes: representations of objects are read again after an action on another object has changed them.

The action's transaction requests them; the poller reads them with its list calls, so a project still gets at most one
list call a second. Without it, a template would show the addresses that a server had before its floating IP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from stoker.model.status import Status
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker_openstack.cloud.drivers.base import Registry
from stoker_openstack.cloud.relations import find_related, is_deleting
from stoker_openstack.model import CloudKind, CloudObject
from stoker_openstack.store import cloud_objects, cloud_refreshes
from stoker_openstack.store.cloud_refreshes import Refresh

#: When objects are read again. Neutron tells Nova of changed addresses some seconds later.
_SECONDS: Mapping[CloudKind, tuple[float, ...]] = {CloudKind.SERVER: (1.0, 8.0)}
_USUAL_SECONDS = (1.0,)
#: Seconds until an object is considered again whose own action is in progress.
_BUSY = timedelta(seconds=5)
#: Limit of the refreshes that one list call serves: the ids are in the URL.
_AT_ONCE = 100
#: The list (``polling.SOURCES``) that has the objects of a kind.
_LISTS: Mapping[CloudKind, str] = {
    CloudKind.SERVER: "servers",
    CloudKind.VOLUME: "volumes",
    CloudKind.PORT: "ports",
    CloudKind.FLOATING_IP: "floatingips",
    CloudKind.ROUTER: "routers",
    CloudKind.NETWORK: "networks",
    CloudKind.SECURITY_GROUP: "security_groups",
}


@dataclass(slots=True)
class Batch:
    """The due refreshes of one list, and the rows that they concern."""

    refreshes: list[Refresh] = field(default_factory=list)
    rows: dict[str, CloudObject] = field(default_factory=dict)

    @property
    def external_ids(self) -> list[str]:
        """The ids of the objects at the cloud."""
        return sorted({str(row.external_id) for row in self.rows.values()})


def request_refreshes(tx: Tx, before: CloudObject, after: CloudObject | None) -> bool:
    """
    Request refreshes of the objects that an action has changed; return whether there are any.

    The arguments are those of ``find_related``.
    """
    related = find_related(tx, before, after)
    for kind, external_id in sorted(related):
        for seconds in _SECONDS.get(kind, _USUAL_SECONDS):
            due_at = tx.now + timedelta(seconds=seconds)
            cloud_refreshes.add(tx, before.project_id, kind, external_id, due_at)
    return bool(related)


class Refresher:
    """Finds the refreshes that are due, and stores what a list call returned."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    def find_due(self, project_id: str | None) -> Mapping[str, Batch]:
        """Return the due refreshes of a project, or of all (None), by the name of the list."""

        def do(tx: Tx) -> dict[str, Batch]:
            batches: dict[str, Batch] = {}
            for refresh in cloud_refreshes.first(tx, project_id, _AT_ONCE):
                if refresh.due_at <= tx.now:
                    self._sort(tx, refresh, batches)
            return batches

        with self._store.read() as tx:
            first = cloud_refreshes.first(tx, project_id, 1)
            if not first or first[0].due_at > tx.now:
                return {}
        return self._store.write(do)

    def next_due(self, tx: Tx, project_id: str | None) -> datetime | None:
        """Return when the next refresh is due; None without one."""
        first = cloud_refreshes.first(tx, project_id, 1)
        return first[0].due_at if first else None

    def store(self, batch: Batch, listed: Mapping[str, Mapping[str, Any]]) -> None:
        """
        Store the representations of a list call, by id, and end the refreshes.

        An object whose own action began meanwhile keeps its representation and its refreshes.
        """
        busy = {row.external_id for row in batch.rows.values() if not self._store_row(row, listed)}

        def end(tx: Tx) -> None:
            cloud_refreshes.delete(tx, [item.id for item in batch.refreshes if item.external_id not in busy])
            for item in batch.refreshes:
                if item.external_id in busy:
                    _postpone(tx, item)

        self._store.write(end)

    def drop(self, batch: Batch) -> None:
        """End refreshes that no credentials permit."""
        self._store.write(lambda tx: cloud_refreshes.delete(tx, [item.id for item in batch.refreshes]))

    def _sort(self, tx: Tx, refresh: Refresh, batches: dict[str, Batch]) -> None:
        """Add a due refresh to the batch of its list, unless the objects are gone or busy."""
        rows = cloud_objects.of_external_id(tx, refresh.project_id, refresh.kind, refresh.external_id)
        rows = [row for row in rows if not is_deleting(row)]
        if not rows:
            cloud_refreshes.delete(tx, [refresh.id])
        elif any(row.status is Status.IN_PROGRESS for row in rows):
            _postpone(tx, refresh)
        else:
            batch = batches.setdefault(_LISTS[refresh.kind], Batch())
            batch.refreshes.append(refresh)
            batch.rows.update({row.id: row for row in rows})

    def _store_row(self, row: CloudObject, listed: Mapping[str, Mapping[str, Any]]) -> bool:
        """Store the representation of one object; return False if an action on the object began meanwhile."""
        observed = listed.get(str(row.external_id))
        if observed is None:
            return True
        merged = self._registry.drivers[row.kind].represent({**row.observed, **observed})
        if merged == row.observed:
            return True

        def do(tx: Tx) -> bool:
            current = cloud_objects.find(tx, row.id, for_update=True)
            if current is not None and current.desired_generation != row.desired_generation:
                return False
            if current is not None:
                cloud_objects.save(tx, replace(current, observed=merged))
            return True

        return self._store.write(do)


def _postpone(tx: Tx, refresh: Refresh) -> None:
    cloud_refreshes.save(tx, replace(refresh, due_at=tx.now + _BUSY))
