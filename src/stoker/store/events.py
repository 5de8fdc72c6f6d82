"""Queries for events. ``Tx.event`` appends them at the end of the transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from stoker.model.stack import Event
from stoker.store import rows
from stoker.store.schema import events
from stoker.store.tx import Tx

_ONE = sa.select(events).where(events.c.stack_id == sa.bindparam("stack"), events.c.id == sa.bindparam("id"))
_SEQ = sa.select(events.c.seq).where(
    events.c.id == sa.bindparam("id"), events.c.stack_id.in_(sa.bindparam("stacks", expanding=True))
)
_FILTERABLE = {name: events.c[name] for name in ("resource_name", "resource_type", "action", "status")}


def add(tx: Tx, new: Event) -> None:
    """Append an event."""
    tx.event(
        {
            "id": new.id,
            "stack_id": new.stack_id,
            "resource_name": new.resource_name,
            "resource_type": new.resource_type,
            "physical_id": new.physical_id,
            "action": new.action,
            "status": new.status,
            "reason": new.reason and new.reason.replace("\0", ""),
            "properties": rows.dump(new.properties),
            "at": rows.to_micros(new.at),
        }
    )


def find(tx: Tx, stack_id: str, id: str) -> Event | None:
    """Return the event of the stack with this id, or None."""
    row = tx.run(_ONE, {"stack": stack_id, "id": id}).first()
    return None if row is None else _event(row)


def list_all(
    tx: Tx,
    stack_ids: Sequence[str],
    *,
    equal: Mapping[str, Sequence[str]],
    limit: int | None,
    marker: str | None,
    descending: bool,
) -> list[Event]:
    """
    Return events of the stacks in order of time, newest first if ``descending``.

    ``equal`` maps a column to its permitted values. ``marker`` is the id of the last event of the previous page.
    """
    query = sa.select(events).where(
        events.c.stack_id.in_(stack_ids), *(_FILTERABLE[name].in_(list(values)) for name, values in equal.items())
    )
    seen = tx.run(_SEQ, {"id": marker, "stacks": list(stack_ids)}).scalar() if marker else None
    if seen is not None:
        query = query.where(events.c.seq < seen if descending else events.c.seq > seen)
    order = events.c.seq.desc() if descending else events.c.seq.asc()
    return [_event(row) for row in tx.run(query.order_by(order).limit(limit))]


def _event(row: Any) -> Event:
    return Event(
        id=row.id,
        seq=row.seq,
        stack_id=row.stack_id,
        resource_name=row.resource_name,
        resource_type=row.resource_type,
        physical_id=row.physical_id,
        action=row.action,
        status=row.status,
        reason=row.reason,
        properties=rows.load(row.properties),
        at=rows.from_micros(row.at),
    )
