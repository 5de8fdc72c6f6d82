"""Queries for the facts of servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.facts import FactsSummary, ServerFacts, describe_os
from stoker.model.selectors import Selectable
from stoker.model.server import AgentAccess, Server
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import server_facts
from stoker.store.tx import Tx

_FACTS = Repository(ServerFacts, server_facts, key=("server_id",))
_SEVERAL = _FACTS.select(server_facts.c.server_id.in_(sa.bindparam("ids", expanding=True)))
#: Lists do not read the facts, which are up to 32 KB of each server.
_SUMMARIES = Repository(FactsSummary, server_facts, key=("server_id",), unmapped=("facts",))
_OF_SERVERS = _SUMMARIES.select(statements.AnyOf(server_facts.c.server_id))


def prefetch(tx: Tx, ids: Iterable[str]) -> None:
    """Load the facts of several servers. In a read transaction, ``find`` returns them from memory afterwards."""
    if tx.prefetched is not None:
        missing = [id for id in ids if ("facts", id) not in tx.prefetched]
        tx.prefetched |= dict.fromkeys((("facts", id) for id in missing), None)
        tx.prefetched |= {("facts", row.server_id): row for row in _FACTS.several(tx, _SEVERAL, missing)}


def find(tx: Tx, server_id: str) -> ServerFacts | None:
    """Return the facts of a server, or None if its agent has sent none."""
    if tx.prefetched is not None and ("facts", server_id) in tx.prefetched:
        facts: ServerFacts | None = tx.prefetched["facts", server_id]
        return facts
    return _FACTS.find(tx, server_id)


def load_facts(tx: Tx, server_id: str) -> Mapping[str, Any]:
    """Return the facts of a server; empty if its agent has sent none."""
    row = find(tx, server_id)
    return row.facts if row else {}


def selectable(server: Server, facts: Mapping[str, Any]) -> Selectable | None:
    """Return what selectors see of a server; None if it waits for approval, or has left: nothing would run there."""
    return Selectable(server.labels, facts) if server.agent_access is AgentAccess.ALLOWED else None


def summaries(tx: Tx, server_ids: Iterable[str]) -> dict[str, FactsSummary]:
    """Return by server id what lists show of the servers' facts."""
    return {facts.server_id: facts for facts in _SUMMARIES.all(tx, _OF_SERVERS, {"ids": rows.dump(list(server_ids))})}


def put(tx: Tx, server: Server, before: ServerFacts | None, facts: Mapping[str, Any]) -> None:
    """Replace the facts of a server. ``before``: its stored facts."""
    new = ServerFacts(
        server_id=server.id,
        facts=facts,
        os=describe_os(facts),
        address=facts.get("address"),
        reported_at=tx.now,
    )
    (_FACTS.add if before is None else _FACTS.save)(tx, new)
    old = selectable(server, before.facts if before else {})
    tx.record_server_change(server.project_id, old, selectable(server, facts))
