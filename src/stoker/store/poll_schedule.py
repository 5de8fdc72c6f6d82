"""Queries for the times at which Stoker polls remote objects for results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from stoker.store import rows
from stoker.store.deployments import IS_CURRENT_RUN
from stoker.store.remote_objects import QUEUE, REMOTE_OBJECTS, VERSIONS, RemoteObject
from stoker.store.schema import deployments, remote_objects, resources, runs
from stoker.store.tx import Tx

_START = (
    sa.update(remote_objects)
    .where(
        remote_objects.c.kind == sa.bindparam("of"),
        remote_objects.c.name == sa.bindparam("named"),
        sa.not_(remote_objects.c.is_removed),
    )
    .values(poll_at=sa.bindparam("at"), poll_interval=sa.bindparam("every"), awaited_until=sa.bindparam("until"))
)
#: After a notification. Objects that are not polled any more are not changed.
_POLL_NOW = (
    sa.update(remote_objects)
    .where(
        remote_objects.c.resource_id == sa.bindparam("resource"),
        remote_objects.c.kind == QUEUE,
        remote_objects.c.poll_at.is_not(None),
    )
    .values(poll_at=sa.bindparam("at"), poll_interval=sa.bindparam("every"))
)
_DUE = (
    sa.select(
        *REMOTE_OBJECTS.columns,
        deployments.c.status,
        # Not the deployment's last change: a cancellation changes the deployment but does not make a result stale.
        sa.func.coalesce(runs.c.queued_at, deployments.c.created_at).label("began"),
    )
    .join_from(remote_objects, resources, resources.c.id == remote_objects.c.resource_id, isouter=True)
    # Without a resource, the object belongs to a deployment.
    .join(
        deployments,
        deployments.c.id == sa.func.coalesce(resources.c.physical_id, remote_objects.c.resource_id),
        isouter=True,
    )
    .join(runs, IS_CURRENT_RUN, isouter=True)
    .where(remote_objects.c.kind == sa.bindparam("of"), remote_objects.c.poll_at <= sa.bindparam("now"))
    .order_by(remote_objects.c.poll_at)
    .limit(sa.bindparam("most"))
)
_NEXT = sa.select(sa.func.min(remote_objects.c.poll_at)).where(
    remote_objects.c.kind == sa.bindparam("of"), remote_objects.c.poll_at.is_not(None)
)
#: Not if another transaction has set another time in the meantime.
_POLLED = (
    sa.update(remote_objects)
    .where(remote_objects.c.id == sa.bindparam("id_"), remote_objects.c.poll_at == sa.bindparam("was"))
    .values(poll_at=sa.bindparam("at"), poll_interval=sa.bindparam("every"))
)
_BEFORE = sa.func.coalesce(remote_objects.c.last_result + " ", "")
_SET_RESULT = (
    sa.update(remote_objects)
    .where(remote_objects.c.id == sa.bindparam("id_"))
    .values(
        last_result=sa.case((remote_objects.c.kind == VERSIONS, _BEFORE), else_="")
        + sa.bindparam("what", type_=sa.Text)
    )
)


@dataclass(frozen=True, slots=True)
class Due:
    """A remote object that is due for polling."""

    remote_object: RemoteObject
    #: When the run with the expected result began. For signals without a run, long ago; None: no signal is expected.
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of a poll: when to poll the object again."""

    remote_object: RemoteObject
    #: None: the object is not polled any more.
    next_at: datetime | None
    interval: timedelta = timedelta(0)


def start(tx: Tx, kind: str, name: str, at: datetime, pause: timedelta, until: datetime | None) -> None:
    """
    Start polling a remote object at this time, with this pause between polls.

    ``until`` is set for signals without a run: until then, a signal is expected.
    """
    every = pause // rows.MICROSECOND
    values = {
        "of": kind,
        "named": name,
        "at": rows.to_micros(at),
        "every": every,
        "until": rows.to_micros_optional(until),
    }
    tx.execute_fast(_START, values)


def poll_now(tx: Tx, resource_id: str, pause: timedelta) -> bool:
    """
    Make the poll of the resource's queue due, after a notification of a result. Return False if the queue is not
    polled.
    """
    values = {"resource": resource_id, "at": rows.to_micros(tx.now), "every": pause // rows.MICROSECOND}
    return tx.run(_POLL_NOW, values).rowcount > 0


def due(tx: Tx, kind: str, limit: int) -> list[Due]:
    """Return at most ``limit`` remote objects of this kind that are due for polling."""
    result = tx.run(_DUE, {"of": kind, "now": rows.to_micros(tx.now), "most": limit})
    return [Due(REMOTE_OBJECTS.decode(row, tx.secrets), _since(row, tx.now)) for row in result]


def _since(row: Any, now: datetime) -> datetime | None:
    if row.status == "IN_PROGRESS":
        return rows.from_micros(row.began)
    return rows.EPOCH if row.awaited_until is not None and row.awaited_until > rows.to_micros(now) else None


def next_poll(tx: Tx, kind: str) -> datetime | None:
    """Return the time of the next poll of this kind of object, or None."""
    next_at: int | None = tx.scalar(_NEXT, {"of": kind})
    return None if next_at is None else rows.from_micros(next_at)


def record_polls(tx: Tx, done: Iterable[Polled]) -> None:
    """Set the next poll of each object, unless another transaction has set another time."""
    values = [
        {
            "id_": poll.remote_object.id,
            "was": poll.remote_object.poll_at,
            "at": rows.to_micros_optional(poll.next_at),
            "every": poll.interval // rows.MICROSECOND,
        }
        for poll in done
    ]
    tx.run_many(_POLLED, values)


def set_result(tx: Tx, id: str, what: str) -> None:
    """Record the identifier of a processed result; for objects with versions, add it to the earlier ones."""
    tx.execute_fast(_SET_RESULT, {"id_": id, "what": what})
