"""Queries for the revisions and channels of servers' documents. The documents are joined from rendered configs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from stoker.store import rows
from stoker.store.notifier import server_topic
from stoker.store.query import execute, scalar
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: Return the revision of a server's document; 0 if the server never had a deployment.
revision: Callable[[Tx, str], int] = scalar(
    "SELECT coalesce(max(revision), 0) FROM documents WHERE server_id = :server_id"
)
#: In one statement, because most servers have no checks.
_AGENT_HEADS = sql(
    "SELECT documents.server_id, revision, servers.policy,"
    " EXISTS (SELECT 1 FROM checks WHERE checks.server_id = documents.server_id)"
    " FROM documents LEFT JOIN servers ON servers.id = documents.server_id WHERE documents.server_id @in(ids)"
)
#: Return the id of the resource whose transport publishes a server's document; None: agents only poll it.
carrier: Callable[[Tx, str], str | None] = scalar("SELECT channel FROM documents WHERE server_id = :server_id")
_PUBLISHED = sql("SELECT published, signed_revision FROM documents WHERE server_id = :server_id")
#: Record the digest and the signed revision of the published document: (transaction, digest, revision, server id).
set_published: Callable[[Tx, str | None, int, str], None] = execute(
    "UPDATE documents SET published = :digest, signed_revision = :revision WHERE server_id = :server_id"
)
#: Publish a server's document by the transport of a resource; None: no longer publish it.
carry: Callable[[Tx, str, str | None], None] = execute(
    "INSERT INTO documents (server_id, revision, channel) VALUES (:id, 1, :channel)"
    " ON CONFLICT (server_id) DO UPDATE SET channel = :channel"
)
_delete: Callable[[Tx, str], None] = execute("DELETE FROM documents WHERE server_id = :server_id")


@dataclass(frozen=True, slots=True)
class Published:
    """The last published document of a server: its digest, and its signed revision (0: nothing was published yet)."""

    digest: str | None
    revision: int


class AgentHead(NamedTuple):
    """What the document of a server's own agent contains besides its runs."""

    #: 0 if the server never had a deployment.
    revision: int = 0
    #: The number of runs that the server may run at a time: the policy's value, else 1.
    concurrency: int = 1
    #: Whether deployments of the server have checks.
    has_checks: bool = False


def agent_heads(tx: Tx, server_ids: Collection[str]) -> dict[str, AgentHead]:
    """Return the heads of the documents of several servers. Servers that never had a deployment are missing."""
    return {
        server_id: AgentHead(revision, _concurrency(policy), bool(has_checks))
        for server_id, revision, policy, has_checks in tx.fetch_all(_AGENT_HEADS, {"ids": rows.dump(list(server_ids))})
    }


def _concurrency(policy: str | None) -> int:
    rules = rows.load(policy) if policy else None
    most = rules.get("max_concurrent_runs") if isinstance(rules, dict) else None
    return most if isinstance(most, int) and most >= 1 else 1


def published(tx: Tx, server_id: str) -> Published:
    """Return the digest and signed revision of the last published document."""
    row = tx.execute_fast(_PUBLISHED, {"server_id": server_id})
    return Published(None, 0) if row is None else Published(*row)


def delete(tx: Tx, server_id: str) -> None:
    """Delete the document's row."""
    tx.drop_document(server_id)
    tx.notify(server_topic(server_id))  # drops the document from caches
    _delete(tx, server_id)
