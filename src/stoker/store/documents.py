"""Queries for the revisions and channels of servers' documents. The documents are joined from rendered configs."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from stoker.store.notifier import server_topic
from stoker.store.schema import documents
from stoker.store.tx import Tx

_REVISION = sa.select(documents.c.revision).where(documents.c.server_id == sa.bindparam("id"))
_CHANNEL = sa.select(documents.c.channel).where(documents.c.server_id == sa.bindparam("id"))
_PUBLISHED = sa.select(documents.c.published, documents.c.signed_revision).where(
    documents.c.server_id == sa.bindparam("id")
)
_SET_PUBLISHED = (
    sa.update(documents)
    .where(documents.c.server_id == sa.bindparam("id_"))
    .values(published=sa.bindparam("published"), signed_revision=sa.bindparam("revision_"))
)
_OPEN = sa.text(
    "INSERT INTO documents (server_id, revision, channel) VALUES (:id, 1, :channel)"
    " ON CONFLICT (server_id) DO UPDATE SET channel = :channel"
)
_DELETE = sa.delete(documents).where(documents.c.server_id == sa.bindparam("id"))


@dataclass(frozen=True, slots=True)
class Published:
    """The last published document of a server: its digest, and its signed revision (0: nothing was published yet)."""

    digest: str | None
    revision: int


def revision(tx: Tx, server_id: str) -> int:
    """Return the revision of the server's document; 0 if the server never had a deployment."""
    return tx.run(_REVISION, {"id": server_id}).scalar() or 0


def carry(tx: Tx, server_id: str, resource_id: str | None) -> None:
    """Publish the server's document by the transport of this resource; None: no longer publish it."""
    tx.run(_OPEN, {"id": server_id, "channel": resource_id})


def carrier(tx: Tx, server_id: str) -> str | None:
    """Return the id of the resource whose transport publishes the document; None: agents only poll it."""
    found: str | None = tx.run(_CHANNEL, {"id": server_id}).scalar()
    return found


def published(tx: Tx, server_id: str) -> Published:
    """Return the digest and signed revision of the last published document."""
    row = tx.run(_PUBLISHED, {"id": server_id}).first()
    return Published(None, 0) if row is None else Published(row.published, row.signed_revision)


def set_published(tx: Tx, server_id: str, carried: Published) -> None:
    """Record the digest and signed revision of the published document."""
    tx.run(_SET_PUBLISHED, {"id_": server_id, "published": carried.digest, "revision_": carried.revision})


def delete(tx: Tx, server_id: str) -> None:
    """Delete the document's row."""
    tx.drop_document(server_id)
    tx.notify(server_topic(server_id))  # drops the document from caches
    tx.run(_DELETE, {"id": server_id})
