"""Queries for cloud objects: the desired and observed states of objects that belong to resources."""

from __future__ import annotations

from collections.abc import Callable, Collection

from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx
from stoker_openstack.model import CloudKind, CloudObject

_OBJECTS = Repository(CloudObject, "cloud_objects", fixed=("kind", "project_id", "root_id"))
_PENDING = sql("SELECT id FROM cloud_objects WHERE status = 'IN_PROGRESS' AND awaits IS NULL AND kind @in(kinds)")
#: In one project, or in all (NULL).
_IN_SCOPE = "project_id = coalesce(:project_id, project_id)"
_AWAITING = _OBJECTS.select(f"status = 'IN_PROGRESS' AND awaits IS NOT NULL AND {_IN_SCOPE} ORDER BY id")
_EXISTING = _OBJECTS.select(f"kind = :kind AND external_id IS NOT NULL AND {_IN_SCOPE} ORDER BY id")
_ANY_EXISTING = sql(
    "SELECT id FROM cloud_objects WHERE kind = :kind AND external_id IS NOT NULL"
    " AND project_id = coalesce(:project_id, project_id) LIMIT 1"
)
_KNOWN = sql("SELECT id FROM cloud_objects WHERE id @in(ids) UNION SELECT id FROM retained_objects WHERE id @in(ids)")
_RETAIN = sql("INSERT INTO retained_objects (id) VALUES (:id) ON CONFLICT DO NOTHING")
_ANY_OF_ROOT = sql("SELECT id FROM cloud_objects WHERE root_id = :root LIMIT 1")
#: Columns that always are encrypted: they may contain passwords, private keys and user data.
_SECRET = ("specification", "arguments")
_OF_ROOT = _OBJECTS.select("root_id = :root_id")
_WITH_EXTERNAL_ID = _OBJECTS.select("project_id = :project_id AND external_id = :external_id")
#: Return the objects of all projects that have one of these ids at the cloud.
with_external_ids: Callable[[Tx, Collection[str]], list[CloudObject]] = _OBJECTS.lister("external_id @in(ids)")
_OF_EXTERNAL_ID = _OBJECTS.select("project_id = :project_id AND kind = :kind AND external_id = :external_id")
_OF_NAME = _OBJECTS.select("project_id = :project_id AND kind = :kind AND name = :name")
_OF_KIND = _OBJECTS.select("project_id = :project_id AND kind = :kind")


def find(tx: Tx, id: str, *, for_update: bool = False) -> CloudObject | None:
    """Return the cloud object of a resource, or None."""
    return _OBJECTS.find(tx, id, for_update=for_update)


def find_external(tx: Tx, project_id: str, external_id: str) -> CloudObject | None:
    """Return the project's object with this id at the cloud, or None."""
    return _OBJECTS.first(tx, _WITH_EXTERNAL_ID, {"project_id": project_id, "external_id": external_id})


def of_external_id(tx: Tx, project_id: str, kind: CloudKind, external_id: str) -> list[CloudObject]:
    """Return the project's objects of a kind with this id at the cloud; several may refer to one object."""
    values = {"project_id": project_id, "kind": kind.value, "external_id": external_id}
    return _OBJECTS.all(tx, _OF_EXTERNAL_ID, values)


def of_name(tx: Tx, project_id: str, kind: CloudKind, name: str) -> list[CloudObject]:
    """Return the project's objects of a kind with this name."""
    return _OBJECTS.all(tx, _OF_NAME, {"project_id": project_id, "kind": kind.value, "name": name})


def of_kind(tx: Tx, project_id: str, kind: CloudKind) -> list[CloudObject]:
    """Return the project's objects of a kind."""
    return _OBJECTS.all(tx, _OF_KIND, {"project_id": project_id, "kind": kind.value})


def of_root(tx: Tx, root_id: str) -> list[CloudObject]:
    """Return all cloud objects of a tree of stacks."""
    return _OBJECTS.all(tx, _OF_ROOT, {"root_id": root_id})


def pending(tx: Tx, kinds: Collection[CloudKind]) -> list[str]:
    """Return the ids of the objects of these kinds whose action is in progress, except for those that are polled."""
    return [row[0] for row in tx.fetch_all(_PENDING, {"kinds": rows.dump([kind.value for kind in kinds])})]


def awaiting(tx: Tx, project_id: str | None) -> list[CloudObject]:
    """Return the objects that are polled, of one project or of all (None)."""
    return _OBJECTS.all(tx, _AWAITING, {"project_id": project_id})


def existing(tx: Tx, kind: CloudKind, project_id: str | None) -> list[CloudObject]:
    """Return the objects of a kind that have an id at the cloud, of one project or of all (None)."""
    return _OBJECTS.all(tx, _EXISTING, {"kind": kind.value, "project_id": project_id})


def any_existing(tx: Tx, kind: CloudKind, project_id: str | None) -> bool:
    """Return whether ``existing`` returns any object."""
    return tx.execute_fast(_ANY_EXISTING, {"kind": kind.value, "project_id": project_id}) is not None


def known_ids(tx: Tx, ids: Collection[str]) -> set[str]:
    """Return those of the ids that have a row, or whose row ``retain`` deleted."""
    return {row[0] for row in tx.fetch_all(_KNOWN, {"ids": rows.dump(list(ids))})}


def any_of_root(tx: Tx, root_id: str) -> bool:
    """Return whether a tree of stacks has any object."""
    return tx.execute_fast(_ANY_OF_ROOT, {"root": root_id}) is not None


def add(tx: Tx, new: CloudObject) -> None:
    """Insert an object."""
    _OBJECTS.add(tx, new, encrypt=_secret(new))


def save(tx: Tx, changed: CloudObject) -> None:
    """Write an object."""
    _OBJECTS.save(tx, changed, encrypt=_secret(changed))


def delete(tx: Tx, id: str) -> None:
    """Delete the row of an object."""
    _OBJECTS.delete(tx, id)


def retain(tx: Tx, id: str) -> None:
    """Delete the row of an object that stays at the cloud."""
    _OBJECTS.delete(tx, id)
    tx.execute_fast(_RETAIN, {"id": id})


def _secret(item: CloudObject) -> tuple[str, ...]:
    return (*_SECRET, "observed") if item.kind in (CloudKind.KEYPAIR, CloudKind.SECRET) else _SECRET
