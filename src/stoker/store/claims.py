"""Queries for claims. The messages of a claim are stored in the table of messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.messaging import Claim
from stoker.store import rows
from stoker.store.schema import claims
from stoker.store.tx import Tx

#: The maximum number of expired claims that ``trim`` deletes.
_TRIM = 10

_at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
_ADD = sa.insert(claims)
_ONE = sa.select(claims).where(
    claims.c.queue_id == sa.bindparam("queue"), claims.c.id == sa.bindparam("id"), claims.c.expires_at > _at
)
_LOCKED = _ONE.with_for_update()
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
    """Insert a claim."""
    tx.run(
        _ADD,
        {
            "id": new.id,
            "queue_id": new.queue_id,
            "ttl": new.ttl,
            "renewed_at": rows.to_micros(new.renewed_at),
            "expires_at": rows.to_micros(new.expires_at),
        },
    )


def find(tx: Tx, queue_id: str, id: str, *, for_update: bool = False) -> Claim | None:
    """Return the claim, or None if it does not exist or has expired. ``for_update`` locks its row."""
    row = tx.run(_LOCKED if for_update else _ONE, {"queue": queue_id, "id": id, "at": rows.to_micros(tx.now)}).first()
    return None if row is None else _claim(row)


def renew(tx: Tx, id: str, *, ttl: int, at: datetime, until: datetime) -> None:
    """Set the claim's time to live in seconds, the time of its renewal and the time of its expiry."""
    tx.run(_RENEW, {"id_": id, "ttl_": ttl, "renewed": rows.to_micros(at), "expires": rows.to_micros(until)})


def delete(tx: Tx, queue_id: str, id: str) -> None:
    """Delete the claim."""
    tx.run(_DELETE, {"queue": queue_id, "id_": id})


def trim(tx: Tx) -> None:
    """Delete a few expired claims of any queue."""
    tx.run(_TRIM_EXPIRED, {"at": rows.to_micros(tx.now)})


def _claim(row: Any) -> Claim:
    return Claim(
        id=row.id,
        queue_id=row.queue_id,
        ttl=row.ttl,
        renewed_at=rows.from_micros(row.renewed_at),
        expires_at=rows.from_micros(row.expires_at),
    )
