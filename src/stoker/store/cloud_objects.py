"""Queries for cloud objects: the desired and observed states of objects that belong to resources."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.model.cloud import CloudObject
from stoker.model.status import Status
from stoker.store.repository import Repository
from stoker.store.schema import cloud_objects
from stoker.store.tx import Tx

_OBJECTS = Repository(CloudObject, cloud_objects, fixed=("kind", "project_id", "root_id"))
_PENDING = sa.select(cloud_objects.c.id).where(cloud_objects.c.status == Status.IN_PROGRESS.value)
_OF_ROOT = _OBJECTS.by("root_id")
_WITH_EXTERNAL_ID = _OBJECTS.by("project_id", "external_id")


def find(tx: Tx, id: str, *, for_update: bool = False) -> CloudObject | None:
    """Return the cloud object of a resource, or None."""
    return _OBJECTS.find(tx, id, for_update=for_update)


def find_external(tx: Tx, project_id: str, external_id: str) -> CloudObject | None:
    """Return the project's object with this id at the cloud, or None."""
    return _OBJECTS.first(tx, _WITH_EXTERNAL_ID, {"project_id": project_id, "external_id": external_id})


def of_root(tx: Tx, root_id: str) -> list[CloudObject]:
    """Return all cloud objects of a tree of stacks."""
    return _OBJECTS.all(tx, _OF_ROOT, {"root_id": root_id})


def pending(tx: Tx) -> list[str]:
    """Return the ids of all objects whose action is in progress."""
    return [row[0] for row in tx.fetch_all(_PENDING, {})]


def add(tx: Tx, new: CloudObject) -> None:
    """Insert an object."""
    _OBJECTS.add(tx, new)


def save(tx: Tx, changed: CloudObject) -> None:
    """Write an object."""
    _OBJECTS.save(tx, changed)


def delete(tx: Tx, id: str) -> None:
    """Delete the row of an object."""
    _OBJECTS.delete(tx, id)
