"""Queries for cloud objects: the desired and observed states of objects that belong to resources."""

from __future__ import annotations

from collections.abc import Callable, Collection

from stoker.store.query import column, execute, exists
from stoker.store.repository import Repository
from stoker.store.tx import Tx
from stoker_openstack.model import CloudKind, CloudObject

_OBJECTS = Repository(CloudObject, "cloud_objects", fixed=("kind", "project_id", "root_id"))
#: Find the cloud object of a resource, or delete its row.
find, delete = _OBJECTS.find, _OBJECTS.delete
#: In one project, or in all (NULL).
_IN_SCOPE = "project_id = coalesce(:project_id, project_id)"
_OF_KIND = "project_id = :project_id AND kind = :kind"
#: Columns that always are encrypted: they may contain passwords, private keys and user data.
_SECRET = ("specification", "arguments")
#: Return the project's object with this id at the cloud, or None.
find_external: Callable[[Tx, str, str], CloudObject | None] = _OBJECTS.finder(
    "project_id = :project_id AND external_id = :external_id"
)
#: Return the objects of all projects that have one of these ids at the cloud.
with_external_ids: Callable[[Tx, Collection[str]], list[CloudObject]] = _OBJECTS.lister("external_id @in(ids)")
#: Return the project's objects of a kind: all, those with a name, or with an id at the cloud, which several may have.
of_kind: Callable[[Tx, str, CloudKind], list[CloudObject]] = _OBJECTS.lister(_OF_KIND)
of_name: Callable[[Tx, str, CloudKind, str], list[CloudObject]] = _OBJECTS.lister(f"{_OF_KIND} AND name = :name")
of_external_id: Callable[[Tx, str, CloudKind, str], list[CloudObject]] = _OBJECTS.lister(
    f"{_OF_KIND} AND external_id = :external_id"
)
#: Return the ids of the objects of these kinds whose action is in progress, except for those that are polled.
pending: Callable[[Tx, Collection[CloudKind]], list[str]] = column(
    "SELECT id FROM cloud_objects WHERE status = 'IN_PROGRESS' AND awaits IS NULL AND kind @in(kinds)"
)
#: Return the objects that are polled, of one project or of all (None).
awaiting: Callable[[Tx, str | None], list[CloudObject]] = _OBJECTS.lister(
    f"status = 'IN_PROGRESS' AND awaits IS NOT NULL AND {_IN_SCOPE} ORDER BY id"
)
_EXISTING = (
    f"kind = :kind AND external_id IS NOT NULL AND NOT (action = 'delete' AND status = 'IN_PROGRESS') AND {_IN_SCOPE}"
)
#: Return the objects of a kind that the cloud has and that stay, of one project or of all (None), or whether there are
#: any.
existing: Callable[[Tx, CloudKind, str | None], list[CloudObject]] = _OBJECTS.lister(f"{_EXISTING} ORDER BY id")
any_existing: Callable[[Tx, CloudKind, str | None], bool] = exists(
    f"SELECT id FROM cloud_objects WHERE {_EXISTING} LIMIT 1"
)
#: Return those of the ids that have a row, or whose row ``retain`` deleted.
known_ids: Callable[[Tx, Collection[str]], list[str]] = column(
    "SELECT id FROM cloud_objects WHERE id @in(ids) UNION SELECT id FROM retained_objects WHERE id @in(ids)"
)
#: Return whether a tree of stacks has any object.
any_of_root: Callable[[Tx, str], bool] = exists("SELECT id FROM cloud_objects WHERE root_id = :root LIMIT 1")
#: Return whether ``retain`` deleted the row with this id.
is_retained: Callable[[Tx, str], bool] = exists("SELECT id FROM retained_objects WHERE id = :id")
_retain: Callable[[Tx, str], None] = execute("INSERT INTO retained_objects (id) VALUES (:id) ON CONFLICT DO NOTHING")


def add(tx: Tx, new: CloudObject) -> None:
    """Insert an object."""
    _OBJECTS.add(tx, new, encrypt=_secret(new))


def save(tx: Tx, changed: CloudObject) -> None:
    """Write an object."""
    _OBJECTS.save(tx, changed, encrypt=_secret(changed))


def retain(tx: Tx, id: str) -> None:
    """Delete the row of an object that stays at the cloud."""
    delete(tx, id)
    _retain(tx, id)


def _secret(item: CloudObject) -> tuple[str, ...]:
    return (*_SECRET, "observed") if item.kind in (CloudKind.KEYPAIR, CloudKind.SECRET) else _SECRET
