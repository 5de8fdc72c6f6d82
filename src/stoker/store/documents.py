"""Revisions of servers' documents. The documents themselves are joins of rendered configs."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.bell import server_topic
from stoker.store.schema import documents
from stoker.store.tx import Tx

_REVISION = sa.select(documents.c.revision).where(documents.c.server_id == sa.bindparam("id"))
_DELETE = sa.delete(documents).where(documents.c.server_id == sa.bindparam("id"))


def revision(tx: Tx, server_id: str) -> int:
    """0 for a server nothing was ever deployed to."""
    return tx.run(_REVISION, {"id": server_id}).scalar() or 0


def delete(tx: Tx, server_id: str) -> None:
    tx.forget(server_id)
    tx.ring(server_topic(server_id))  # whoever remembers its document forgets it
    tx.run(_DELETE, {"id": server_id})
