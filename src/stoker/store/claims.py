"""Queries for claims. The messages of a claim are stored in the table of messages."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from stoker.model.messaging import Claim
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import claims
from stoker.store.tx import Tx

#: The maximum number of expired claims that ``trim`` deletes.
_TRIM = 10

_at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
_CLAIMS = Repository(Claim, claims, key=("queue_id", "id"))
_ALIVE = _CLAIMS.by("queue_id", "id").where(claims.c.expires_at > _at)
_RENEW = statements.update(claims, "ttl", "renewed_at", "expires_at")
_TRIM_EXPIRED = statements.delete_expired(claims, claims.c.id, _TRIM)


def add(tx: Tx, new: Claim) -> None:
    """Insert a claim."""
    _CLAIMS.add(tx, new)


def find(tx: Tx, queue_id: str, id: str, *, for_update: bool = False) -> Claim | None:
    """Return the claim, or None if it does not exist or has expired. ``for_update`` locks its row."""
    values = {"queue_id": queue_id, "id": id, "at": rows.to_micros(tx.now)}
    return _CLAIMS.first(tx, _ALIVE, values, for_update=for_update)


def renew(tx: Tx, id: str, *, ttl: int, at: datetime, until: datetime) -> None:
    """Set the claim's time to live in seconds, the time of its renewal and the time of its expiry."""
    values = {"ttl": ttl, "renewed_at": rows.to_micros(at), "expires_at": rows.to_micros(until)}
    tx.execute_fast(_RENEW, {"key_id": id, **values})


def delete(tx: Tx, queue_id: str, id: str) -> None:
    """Delete the claim."""
    _CLAIMS.delete(tx, queue_id, id)


def trim(tx: Tx) -> None:
    """Delete a few expired claims of any queue."""
    tx.execute_fast(_TRIM_EXPIRED, {"at": rows.to_micros(tx.now)})
