"""The audit log in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.audit import Decision, Entry, Verdict
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
_PURGE = sa.delete(audit).where(audit.c.at < sa.bindparam("before"))
_LAST = 2**63 - 1


def add(tx: Tx, made: Decision) -> None:
    tx.quick(
        _ADD,
        {
            "project_id": made.project_id,
            "at": rows.stamp(tx.now),
            "who": made.who,
            "what": made.what[:255],
            "decision": made.decision.value,
            "server_id": made.server_id,
            "deployment_id": made.deployment_id,
            "stack_id": made.stack_id,
            "reason": made.reason,
        },
    )


def listed(
    tx: Tx, project_id: str, *, server_id: str | None = None, limit: int = 1000, before: int | None = None
) -> list[Entry]:
    """Newest first, from the one after ``before`` on."""
    asked: dict[str, Any] = {"project": project_id, "limit": limit, "before": _LAST if before is None else before}
    found = tx.run(_LIST, asked) if server_id is None else tx.run(_OF_SERVER, {**asked, "server": server_id})
    return [_entry(row) for row in found]


def purge(tx: Tx, before: datetime) -> int:
    """Forget what was decided before then; returns how many."""
    count: int = tx.run(_PURGE, {"before": rows.stamp(before)}).rowcount
    return count


def _entry(row: Any) -> Entry:
    made = Decision(
        project_id=row.project_id,
        who=row.who,
        what=row.what,
        decision=Verdict(row.decision),
        reason=row.reason,
        server_id=row.server_id,
        deployment_id=row.deployment_id,
        stack_id=row.stack_id,
    )
    return Entry(row.seq, rows.moment(row.at), made)
