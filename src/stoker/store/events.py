"""Queries for events. ``Tx.event`` appends them at the end of the transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from stoker.model.stack import Event
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import events
from stoker.store.tx import Tx

_EVENTS = Repository(Event, events, key=("stack_id", "id"))
_SEQ = sa.select(events.c.seq).where(
    events.c.id == sa.bindparam("id"), events.c.stack_id.in_(sa.bindparam("stacks", expanding=True))
)
_FILTERABLE = {name: events.c[name] for name in ("resource_name", "resource_type", "action", "status")}

_PURGE = statements.delete_oldest(events, events.c.at)


def add(tx: Tx, new: Event) -> None:
    """Append an event."""
    tx.event(_EVENTS.encode(new, tx.secrets) | {"reason": new.reason and new.reason.replace("\0", "")})


def find(tx: Tx, stack_id: str, id: str) -> Event | None:
    """Return the event of the stack with this id, or None."""
    return _EVENTS.find(tx, stack_id, id)


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
    query = _EVENTS.select(
        events.c.stack_id.in_(stack_ids), *(_FILTERABLE[name].in_(list(values)) for name, values in equal.items())
    )
    seen = tx.run(_SEQ, {"id": marker, "stacks": list(stack_ids)}).scalar() if marker else None
    if seen is not None:
        query = query.where(events.c.seq < seen if descending else events.c.seq > seen)
    order = events.c.seq.desc() if descending else events.c.seq.asc()
    return [_EVENTS.decode(row, tx.secrets) for row in tx.run(query.order_by(order).limit(limit))]


def purge(tx: Tx, before: datetime, most: int) -> int:
    """Delete, among the ``most`` oldest events of all stacks, those older than ``before``; return their number."""
    count: int = tx.run(_PURGE, {"before": rows.to_micros(before), "most": most}).rowcount
    return count
