"""When to look for results at what Stoker has in a Swift or a Zaqar, in SQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from stoker.store import rows
from stoker.store.lodgings import QUEUE, VERSIONS, Lodging, loaded
from stoker.store.schema import deployments, lodgings, resources, runs
from stoker.store.tx import Tx

_MICROSECOND = timedelta(microseconds=1)
_LONG_AGO = datetime.fromtimestamp(0, UTC)

_LISTEN = (
    sa.update(lodgings)
    .where(lodgings.c.kind == sa.bindparam("of"), lodgings.c.name == sa.bindparam("named"), sa.not_(lodgings.c.gone))
    .values(look_at=sa.bindparam("at"), pause=sa.bindparam("every"), awaited_until=sa.bindparam("until"))
)
#: Rung for; what nobody listens for any more stays so.
_RING = (
    sa.update(lodgings)
    .where(
        lodgings.c.resource_id == sa.bindparam("resource"),
        lodgings.c.kind == QUEUE,
        lodgings.c.look_at.is_not(None),
    )
    .values(look_at=sa.bindparam("at"), pause=sa.bindparam("every"))
)
_DUE = (
    sa.select(
        lodgings,
        deployments.c.status,
        # Not when the deployment changed last: that its run is being cancelled makes no result a stale one.
        sa.func.coalesce(runs.c.queued_at, deployments.c.created_at).label("began"),
    )
    .join_from(lodgings, resources, resources.c.id == lodgings.c.resource_id, isouter=True)
    # What no resource stands behind is the deployment's own.
    .join(
        deployments,
        deployments.c.id == sa.func.coalesce(resources.c.physical_id, lodgings.c.resource_id),
        isouter=True,
    )
    .join(
        runs,
        sa.and_(runs.c.deployment_id == deployments.c.id, runs.c.config_id == deployments.c.config_id),
        isouter=True,
    )
    .where(lodgings.c.kind == sa.bindparam("of"), lodgings.c.look_at <= sa.bindparam("now"))
    .order_by(lodgings.c.look_at)
    .limit(sa.bindparam("most"))
)
_NEXT = sa.select(sa.func.min(lodgings.c.look_at)).where(
    lodgings.c.kind == sa.bindparam("of"), lodgings.c.look_at.is_not(None)
)
#: Not when somebody asked for another time meanwhile.
_LOOKED = (
    sa.update(lodgings)
    .where(lodgings.c.id == sa.bindparam("id_"), lodgings.c.look_at == sa.bindparam("was"))
    .values(look_at=sa.bindparam("at"), pause=sa.bindparam("every"))
)
_BEFORE = sa.func.coalesce(lodgings.c.heard + " ", "")
_HEARD = (
    sa.update(lodgings)
    .where(lodgings.c.id == sa.bindparam("id_"))
    .values(heard=sa.case((lodgings.c.kind == VERSIONS, _BEFORE), else_="") + sa.bindparam("what", type_=sa.Text))
)


@dataclass(frozen=True, slots=True)
class Due:
    lodging: Lodging
    #: When the run began whose result is awaited, long ago for signals that are no run's; None: nothing is.
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Looked:
    lodging: Lodging
    #: None: no more.
    again: datetime | None
    pause: timedelta = timedelta(0)


def listen(tx: Tx, kind: str, name: str, at: datetime, pause: timedelta, until: datetime | None) -> None:
    """``until``: for signals that are no run's."""
    every = pause // _MICROSECOND
    values = {"of": kind, "named": name, "at": rows.stamp(at), "every": every, "until": rows.stamp_optional(until)}
    tx.run(_LISTEN, values)


def ring(tx: Tx, resource_id: str, pause: timedelta) -> bool:
    """A result is said to be in the resource's queue; False when nobody waits for one."""
    values = {"resource": resource_id, "at": rows.stamp(tx.now), "every": pause // _MICROSECOND}
    return tx.run(_RING, values).rowcount > 0


def due(tx: Tx, kind: str, limit: int) -> list[Due]:
    """Those that have to be looked at by now."""
    found = tx.run(_DUE, {"of": kind, "now": rows.stamp(tx.now), "most": limit})
    return [Due(loaded(row), _since(row, tx.now)) for row in found]


def _since(row: Any, now: datetime) -> datetime | None:
    if row.status == "IN_PROGRESS":
        return rows.moment(row.began)
    return _LONG_AGO if row.awaited_until is not None and row.awaited_until > rows.stamp(now) else None


def next_look(tx: Tx, kind: str) -> datetime | None:
    found: int | None = tx.run(_NEXT, {"of": kind}).scalar()
    return rows.moment_optional(found)


def looked(tx: Tx, done: Iterable[Looked]) -> None:
    values = [
        {
            "id_": each.lodging.id,
            "was": each.lodging.look_at,
            "at": rows.stamp_optional(each.again),
            "every": each.pause // _MICROSECOND,
        }
        for each in done
    ]
    if values:
        tx.run(_LOOKED, values)


def heard(tx: Tx, id: str, what: str) -> None:
    tx.run(_HEARD, {"id_": id, "what": what})
