"""Queries for the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.audit import Decision, Entry, Outcome
from stoker.store import rows
from stoker.store.schema import audit
from stoker.store.tx import Tx

_ADD = sa.insert(audit)
_LIST = (
    sa.select(audit)
    .where(audit.c.project_id == sa.bindparam("project"), audit.c.seq < sa.bindparam("before"))
    .order_by(audit.c.seq.desc())
    .limit(sa.bindparam("limit"))
)
_OF_SERVER = _LIST.where(audit.c.server_id == sa.bindparam("server"))
_PURGE = sa.delete(audit).where(
    audit.c.seq.in_(sa.select(audit.c.seq).where(audit.c.at < sa.bindparam("before")).limit(sa.bindparam("most")))
)
_LAST = 2**63 - 1


def add(tx: Tx, made: Decision) -> None:
    """Append a decision to the audit log."""
    tx.execute_fast(
        _ADD,
        {
            "project_id": made.project_id,
            "at": rows.to_micros(tx.now),
            "actor": made.actor,
            "action": made.action[:255],
            "outcome": made.outcome.value,
            "server_id": made.server_id,
            "deployment_id": made.deployment_id,
            "stack_id": made.stack_id,
            "reason": made.reason,
        },
    )


def list_all(
    tx: Tx, project_id: str, *, server_id: str | None = None, limit: int = 1000, before: int | None = None
) -> list[Entry]:
    """
    Return at most ``limit`` entries of a project, newest first.

    ``server_id`` restricts the entries to one server. ``before`` is a ``seq``: only older entries are returned.
    """
    asked: dict[str, Any] = {"project": project_id, "limit": limit, "before": _LAST if before is None else before}
    found = tx.run(_LIST, asked) if server_id is None else tx.run(_OF_SERVER, {**asked, "server": server_id})
    return [_entry(row) for row in found]


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Delete at most ``most`` entries older than ``before``; return their number."""
    count: int = tx.run(_PURGE, {"before": rows.to_micros(before), "most": most}).rowcount
    return count


def _entry(row: Any) -> Entry:
    made = Decision(
        project_id=row.project_id,
        actor=row.actor,
        action=row.action,
        outcome=Outcome(row.outcome),
        reason=row.reason,
        server_id=row.server_id,
        deployment_id=row.deployment_id,
        stack_id=row.stack_id,
    )
    return Entry(row.seq, rows.from_micros(row.at), made)
