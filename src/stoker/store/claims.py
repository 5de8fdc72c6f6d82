"""Claims in SQL; what each of them holds stands with the messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.messaging import Claim
from stoker.store import rows
from stoker.store.schema import claims
from stoker.store.tx import Tx

#: Expired claims that a new one clears away.
_TRIM = 10

_at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
_ADD = sa.insert(claims)
_ONE = sa.select(claims).where(
    claims.c.queue_id == sa.bindparam("queue"), claims.c.id == sa.bindparam("id"), claims.c.expires_at > _at
)
_HELD = _ONE.with_for_update()
_RENEW = (
    sa.update(claims)
    .where(claims.c.id == sa.bindparam("id_"))
    .values(ttl=sa.bindparam("ttl_"), renewed_at=sa.bindparam("renewed"), expires_at=sa.bindparam("expires"))
)
_DELETE = sa.delete(claims).where(claims.c.queue_id == sa.bindparam("queue"), claims.c.id == sa.bindparam("id_"))
_expired = (
    sa.select(claims.c.id)
    .where(claims.c.expires_at <= _at)
    .order_by(claims.c.expires_at)
    .limit(_TRIM)
    .with_for_update(skip_locked=True)
)
_TRIM_EXPIRED = sa.delete(claims).where(claims.c.id.in_(_expired))


def add(tx: Tx, new: Claim) -> None:
    tx.run(
        _ADD,
        {
            "id": new.id,
            "queue_id": new.queue_id,
            "ttl": new.ttl,
            "renewed_at": rows.stamp(new.renewed_at),
            "expires_at": rows.stamp(new.expires_at),
        },
    )


def find(tx: Tx, queue_id: str, id: str, *, hold: bool = False) -> Claim | None:
    """None also for one that is over."""
    row = tx.run(_HELD if hold else _ONE, {"queue": queue_id, "id": id, "at": rows.stamp(tx.now)}).first()
    return None if row is None else _claim(row)


def renew(tx: Tx, id: str, *, ttl: int, at: datetime, until: datetime) -> None:
    tx.run(_RENEW, {"id_": id, "ttl_": ttl, "renewed": rows.stamp(at), "expires": rows.stamp(until)})


def delete(tx: Tx, queue_id: str, id: str) -> None:
    tx.run(_DELETE, {"queue": queue_id, "id_": id})


def trim(tx: Tx) -> None:
    """Clear a few away that are over, in whatever queue."""
    tx.run(_TRIM_EXPIRED, {"at": rows.stamp(tx.now)})


def _claim(row: Any) -> Claim:
    return Claim(
        id=row.id,
        queue_id=row.queue_id,
        ttl=row.ttl,
        renewed_at=rows.moment(row.renewed_at),
        expires_at=rows.moment(row.expires_at),
    )
