"""Queries for the revisions and channels of servers' documents. The documents are joined from rendered configs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from stoker.store import rows
from stoker.store.notifier import server_topic
from stoker.store.sql import delete as delete_by
from stoker.store.sql import sql, update
from stoker.store.tx import Tx

_REVISION = sql("SELECT revision FROM documents WHERE server_id = :server_id")
#: In one statement, because most servers have neither checks nor an upgrade.
_AGENT_HEADS = sql(
    "SELECT documents.server_id, revision, servers.policy,"
    " EXISTS (SELECT 1 FROM checks WHERE checks.server_id = documents.server_id),"
    " EXISTS (SELECT 1 FROM agent_upgrades WHERE agent_upgrades.server_id = documents.server_id)"
    " FROM documents LEFT JOIN servers ON servers.id = documents.server_id WHERE documents.server_id @in(ids)"
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


class AgentHead(NamedTuple):
    """What the document of a server's own agent contains besides its runs."""

    #: 0 if the server never had a deployment.
    revision: int = 0
    #: The number of runs that the server may run at a time: the policy's value, else 1.
    concurrency: int = 1
    #: Whether deployments of the server have checks.
    has_checks: bool = False
    #: Whether the agent has an upgrade, in any state.
    has_upgrade: bool = False


def agent_heads(tx: Tx, server_ids: Collection[str]) -> dict[str, AgentHead]:
    """Return the heads of the documents of several servers. Servers that never had a deployment are missing."""
    return {
        server_id: AgentHead(revision, _concurrency(policy), bool(has_checks), bool(has_upgrade))
        for server_id, revision, policy, has_checks, has_upgrade in tx.fetch_all(
            _AGENT_HEADS, {"ids": rows.dump(list(server_ids))}
        )
    }


def _concurrency(policy: str | None) -> int:
    rules = rows.load(policy) if policy else None
    most = rules.get("max_concurrent_runs") if isinstance(rules, dict) else None
    return most if isinstance(most, int) and most >= 1 else 1


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
