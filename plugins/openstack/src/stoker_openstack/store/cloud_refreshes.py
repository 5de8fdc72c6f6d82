"""Queries for refreshes: objects of a cloud whose representation has to be read again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import uuid4

from msgspec import Struct

from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx
from stoker_openstack.model import CloudKind


class Refresh(Struct, frozen=True, kw_only=True):
    """A request to read the objects of a project again that have this id at the cloud, not before ``due_at``."""

    id: str
    project_id: str
    kind: CloudKind
    external_id: str
    due_at: datetime


_REFRESHES = Repository(Refresh, "cloud_refreshes", fixed=("project_id", "kind", "external_id"))
_OF_ALL = _REFRESHES.select("true ORDER BY due_at, id LIMIT :most")
_OF_PROJECT = _REFRESHES.select("project_id = :project_id ORDER BY due_at, id LIMIT :most")
_DELETE = sql("DELETE FROM cloud_refreshes WHERE id @in(ids)")


def first(tx: Tx, project_id: str | None, most: int) -> list[Refresh]:
    """Return the refreshes that are due first, at most ``most``, of one project or of all (None)."""
    if project_id is None:
        return _REFRESHES.all(tx, _OF_ALL, {"most": most})
    return _REFRESHES.all(tx, _OF_PROJECT, {"most": most, "project_id": project_id})


def add(tx: Tx, project_id: str, kind: CloudKind, external_id: str, due_at: datetime) -> None:
    """Insert a refresh."""
    new = Refresh(id=str(uuid4()), project_id=project_id, kind=kind, external_id=external_id, due_at=due_at)
    _REFRESHES.add(tx, new)


def save(tx: Tx, changed: Refresh) -> None:
    """Write a refresh."""
    _REFRESHES.save(tx, changed)


def delete(tx: Tx, ids: Collection[str]) -> None:
    """Delete refreshes."""
    tx.execute_fast(_DELETE, {"ids": rows.dump(list(ids))})
