"""Queries for one-time codes that were used, by their hashes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from stoker.store.query import execute, scalar
from stoker.store.tx import Tx

_drop_expired: Callable[[Tx, datetime], None] = execute("DELETE FROM used_codes WHERE expires_at < :before")
_add: Callable[[Tx, str, datetime], str | None] = scalar(
    "INSERT INTO used_codes (hash, expires_at) VALUES (:hash, :expires_at) ON CONFLICT DO NOTHING RETURNING hash"
)


def use(tx: Tx, code_hash: str, expires_at: datetime) -> bool:
    """Note that a code was used. Return False if it was used before, in any process of the site."""
    _drop_expired(tx, tx.now)
    return _add(tx, code_hash, expires_at) is not None
