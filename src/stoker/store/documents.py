"""Revisions of servers' documents. The documents themselves are joins of rendered configs."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.bell import server_topic
from stoker.store.schema import documents
from stoker.store.tx import Tx

_REVISION = sa.select(documents.c.revision).where(documents.c.server_id == sa.bindparam("id"))
_PUBLISHED = sa.select(documents.c.published).where(documents.c.server_id == sa.bindparam("id"))
_SET_PUBLISHED = (
    sa.update(documents).where(documents.c.server_id == sa.bindparam("id_")).values(published=sa.bindparam("published"))
)
_OPEN = sa.text(
    "INSERT INTO documents (server_id, revision, channel) VALUES (:id, 1, :channel)"
    " ON CONFLICT (server_id) DO UPDATE SET channel = :channel"
)
_DELETE = sa.delete(documents).where(documents.c.server_id == sa.bindparam("id"))


def revision(tx: Tx, server_id: str) -> int:
    """0 for a server nothing was ever deployed to."""
    return tx.run(_REVISION, {"id": server_id}).scalar() or 0


def carry(tx: Tx, server_id: str, resource_id: str | None) -> None:
    """From now on it is carried somewhere by that resource's transport; None: no more."""
    tx.run(_OPEN, {"id": server_id, "channel": resource_id})


def published(tx: Tx, server_id: str) -> str | None:
    """Digest of what was carried there last."""
    found: str | None = tx.run(_PUBLISHED, {"id": server_id}).scalar()
    return found


def set_published(tx: Tx, server_id: str, digest: str) -> None:
    tx.run(_SET_PUBLISHED, {"id_": server_id, "published": digest})


def delete(tx: Tx, server_id: str) -> None:
    tx.forget(server_id)
    tx.ring(server_topic(server_id))  # whoever remembers its document forgets it
    tx.run(_DELETE, {"id": server_id})
