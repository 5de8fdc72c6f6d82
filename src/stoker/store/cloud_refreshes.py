"""Queries for refreshes: objects of a cloud whose representation has to be read again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

import sqlalchemy as sa

from stoker.model.cloud import CloudKind
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.schema import cloud_refreshes
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """A request to read the objects of a project again that have this id at the cloud, not before ``due_at``."""

    id: str
    project_id: str
    kind: CloudKind
    external_id: str
    due_at: datetime


_REFRESHES = Repository(Refresh, cloud_refreshes, fixed=("project_id", "kind", "external_id"))
_OF_ALL = _REFRESHES.select().order_by(cloud_refreshes.c.due_at, cloud_refreshes.c.id).limit(sa.bindparam("most"))
_OF_PROJECT = _OF_ALL.where(cloud_refreshes.c.project_id == sa.bindparam("project_id"))
_DELETE = sa.delete(cloud_refreshes).where(cloud_refreshes.c.id.in_(sa.bindparam("ids", expanding=True)))


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
    for portion in rows.portions(ids):
        tx.run(_DELETE, {"ids": portion})
