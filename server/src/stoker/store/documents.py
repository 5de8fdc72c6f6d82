"""Queries for the revisions and channels of servers' documents. The documents are joined from rendered configs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from stoker.store import rows
from stoker.store.notifier import server_topic
from stoker.store.sql import delete as delete_by
from stoker.store.sql import sql, update
from stoker.store.tx import Tx

_REVISION = sql("SELECT revision FROM documents WHERE server_id = :server_id")
#: In one statement, because most servers have no checks.
_AGENT_HEADS = sql(
    "SELECT server_id, revision, EXISTS (SELECT 1 FROM checks WHERE checks.server_id = documents.server_id)"
    " FROM documents WHERE server_id @in(ids)"
)
_CHANNEL = sql("SELECT channel FROM documents WHERE server_id = :server_id")
_PUBLISHED = sql("SELECT published, signed_revision FROM documents WHERE server_id = :server_id")
_SET_PUBLISHED = update("documents", "published", "signed_revision", key=("server_id",))
_OPEN = sql(
    "INSERT INTO documents (server_id, revision, channel) VALUES (:id, 1, :channel)"
    " ON CONFLICT (server_id) DO UPDATE SET channel = :channel"
)
_DELETE = delete_by("documents", "server_id")


@dataclass(frozen=True, slots=True)
class Published:
    """The last published document of a server: its digest, and its signed revision (0: nothing was published yet)."""

    digest: str | None
    revision: int


def revision(tx: Tx, server_id: str) -> int:
    """Return the revision of the server's document; 0 if the server never had a deployment."""
    return tx.scalar(_REVISION, {"server_id": server_id}) or 0


def agent_heads(tx: Tx, server_ids: Collection[str]) -> dict[str, tuple[int, bool]]:
    """
    Return the revision of each server's document, and whether deployments of the server have checks.

    Servers that never had a deployment are missing.
    """
    result = tx.fetch_all(_AGENT_HEADS, {"ids": rows.dump(list(server_ids))})
    return {server_id: (revision, bool(has_checks)) for server_id, revision, has_checks in result}


def carry(tx: Tx, server_id: str, resource_id: str | None) -> None:
    """Publish the server's document by the transport of this resource; None: no longer publish it."""
    tx.execute_fast(_OPEN, {"id": server_id, "channel": resource_id})


def carrier(tx: Tx, server_id: str) -> str | None:
    """Return the id of the resource whose transport publishes the document; None: agents only poll it."""
    resource_id: str | None = tx.scalar(_CHANNEL, {"server_id": server_id})
    return resource_id


def published(tx: Tx, server_id: str) -> Published:
    """Return the digest and signed revision of the last published document."""
    row = tx.execute_fast(_PUBLISHED, {"server_id": server_id})
    return Published(None, 0) if row is None else Published(*row)


def set_published(tx: Tx, server_id: str, carried: Published) -> None:
    """Record the digest and signed revision of the published document."""
    values = {"published": carried.digest, "signed_revision": carried.revision}
    tx.execute_fast(_SET_PUBLISHED, {"key_server_id": server_id, **values})


def delete(tx: Tx, server_id: str) -> None:
    """Delete the document's row."""
    tx.drop_document(server_id)
    tx.notify(server_topic(server_id))  # drops the document from caches
    tx.execute_fast(_DELETE, {"server_id": server_id})
