"""Queries for events. ``Tx.event`` appends them at the end of the transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from stoker.model.stack import Event
from stoker.store import rows
from stoker.store.query import delete_oldest, exists, scalar
from stoker.store.repository import Repository
from stoker.store.sql import compose, sql
from stoker.store.tx import Tx

_EVENTS = Repository(Event, "events", key=("stack_id", "id"))
find = _EVENTS.find
#: Return the next events of a stack after a number, at most ``limit``: ``list_after(tx, stack_id, after, limit)``.
list_after: Callable[[Tx, str, int, int], list[Event]] = _EVENTS.lister(
    "stack_id = :stack_id AND seq > :after ORDER BY seq LIMIT :limit"
)
#: Return the number of a stack's last event, or None.
last_position: Callable[[Tx, str], int | None] = scalar("SELECT max(seq) FROM events WHERE stack_id = :stack_id")
#: Return whether a stack has the event with this number.
has_position: Callable[[Tx, str, int], bool] = exists("SELECT 1 FROM events WHERE stack_id = :stack_id AND seq = :seq")
_SEQ = sql("SELECT seq FROM events WHERE id = :id AND stack_id @in(stacks)")
#: The columns that ``list_all`` compares.
_FILTERABLE = frozenset({"resource_name", "resource_type", "action", "status"})
purge: Callable[[Tx, datetime, int], int] = delete_oldest("events")
_TIMES = sql(
    "SELECT stack_id, resource_name, max(CASE WHEN status = 'IN_PROGRESS' THEN at END),"
    " max(CASE WHEN status != 'IN_PROGRESS' THEN at END) FROM events WHERE stack_id @in(stacks)"
    " GROUP BY stack_id, resource_name"
)


def add(tx: Tx, new: Event) -> None:
    """Append an event."""
    tx.event(_EVENTS.encode(new, tx.secrets) | {"reason": new.reason and new.reason.replace("\0", "")})


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
    values = {name: rows.dump(list(permitted)) for name, permitted in equal.items()}
    assert _FILTERABLE.issuperset(values), "a name becomes a part of the statement"
    stacks = rows.dump(list(stack_ids))
    seen = tx.scalar(_SEQ, {"id": marker, "stacks": stacks}) if marker else None
    sign, order = ("<", "DESC") if descending else (">", "ASC")
    conditions = [
        # Rows of one stack come from the index in their order.
        "stack_id = :stack" if len(stack_ids) == 1 else "stack_id @in(stacks)",
        *(f"{name} @in({name})" for name in values),
        *(() if seen is None else (f"seq {sign} :seen",)),
    ]
    query = compose(_EVENTS.select(f"{' AND '.join(conditions)} ORDER BY seq {order} LIMIT :limit").text)
    values |= {"stack": stack_ids[0] if stack_ids else "", "stacks": stacks}
    return _EVENTS.all(tx, query, {**values, "seen": seen, "limit": rows.UNLIMITED if limit is None else limit})


def times(tx: Tx, stack_ids: Sequence[str]) -> dict[tuple[str, str], tuple[datetime | None, datetime | None]]:
    """
    Return when the last action of each resource began, and when an action last ended, by stack id and resource name.
    """
    return {
        (stack_id, name): (_to_time(began), _to_time(ended))
        for stack_id, name, began, ended in tx.fetch_all(_TIMES, {"stacks": rows.dump(list(stack_ids))})
    }


def _to_time(micros: int | None) -> datetime | None:
    return None if micros is None else rows.from_micros(micros)
