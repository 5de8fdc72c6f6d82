"""Queries for the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.audit import Decision, Entry
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import audit
from stoker.store.tx import Tx

_DECISIONS = Repository(Decision, audit, key=("seq",), unmapped=("at",))
_LIST = (
    _DECISIONS.by("project_id")
    .add_columns(audit.c.seq, audit.c.at)
    .where(audit.c.seq < sa.bindparam("before"))
    .order_by(audit.c.seq.desc())
    .limit(sa.bindparam("limit"))
)
_OF_SERVER = _LIST.where(audit.c.server_id == sa.bindparam("server_id"))
_PURGE = statements.delete_oldest(audit, audit.c.at)
_LAST = 2**63 - 1


def add(tx: Tx, decision: Decision) -> None:
    """Append a decision to the audit log."""
    _DECISIONS.add(tx, decision, action=decision.action[:255], at=rows.to_micros(tx.now))


def list_all(
    tx: Tx, project_id: str, *, server_id: str | None = None, limit: int = 1000, before: int | None = None
) -> list[Entry]:
    """
    Return at most ``limit`` entries of a project, newest first.

    ``server_id`` restricts the entries to one server. ``before`` is a ``seq``: only older entries are returned.
    """
    values: dict[str, Any] = {"project_id": project_id, "limit": limit, "before": _LAST if before is None else before}
    query, values = (_LIST, values) if server_id is None else (_OF_SERVER, {**values, "server_id": server_id})
    result = tx.fetch_all(query, values)
    return [Entry(row[-2], rows.from_micros(row[-1]), _DECISIONS.decode(row, tx.secrets)) for row in result]


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Delete, among the ``most`` oldest entries, those older than ``before``; return their number."""
    count: int = tx.run(_PURGE, {"before": rows.to_micros(before), "most": most}).rowcount
    return count
