"""Queries for tokens, by their hashes."""

from __future__ import annotations

from datetime import datetime

from stoker.model.principal import Token
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import delete, sql
from stoker.store.tx import Tx

_TOKENS = Repository(Token, "tokens", key=("hash",))
_DROP = sql("DELETE FROM tokens WHERE hash @in(hashes)")
_MADE_FROM = sql("SELECT hash FROM tokens WHERE parent_hash @in(hashes)")
_DROP_OF_USER = delete("tokens", "user_id")
_DROP_EXPIRED = sql("DELETE FROM tokens WHERE expires_at < :now")


def add(tx: Tx, token_hash: str, new: Token) -> None:
    """Insert a token."""
    _TOKENS.add(tx, new, hash=token_hash)


def find(tx: Tx, token_hash: str, *, for_update: bool = False) -> Token | None:
    """Return the token, or None. ``for_update`` locks its row, so that it is not revoked until the transaction ends."""
    return _TOKENS.find(tx, token_hash, for_update=for_update)


def drop(tx: Tx, token_hash: str) -> None:
    """
    Delete a token and all tokens that were created from it, directly or indirectly.

    A transaction that creates a token locks the parent token first. Therefore a deleted token gets no more children,
    and the deletion by levels finds all of them.
    """
    level = [token_hash]
    while level:
        values = {"hashes": rows.dump(level)}
        tx.execute_fast(_DROP, values)
        level = [row[0] for row in tx.fetch_all(_MADE_FROM, values)]


def drop_of_user(tx: Tx, user_id: str) -> None:
    """Delete all tokens of a user."""
    tx.execute_fast(_DROP_OF_USER, {"user_id": user_id})


def drop_expired(tx: Tx, now: datetime) -> None:
    """Delete all tokens that have expired at the time ``now``."""
    tx.execute_fast(_DROP_EXPIRED, {"now": rows.to_micros(now)})
