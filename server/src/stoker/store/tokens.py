"""Queries for tokens, by their hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from stoker.model.principal import Token
from stoker.store.query import column, execute
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_TOKENS = Repository(Token, "tokens", key=("hash",))
#: ``for_update`` locks the row of a token, so that it is not revoked until the transaction ends.
find = _TOKENS.find
_drop_all: Callable[[Tx, Sequence[str]], None] = execute("DELETE FROM tokens WHERE hash @in(hashes)")
_list_created_from: Callable[[Tx, Sequence[str]], list[str]] = column(
    "SELECT hash FROM tokens WHERE parent_hash @in(hashes)"
)
drop_of_user: Callable[[Tx, str], None] = execute("DELETE FROM tokens WHERE user_id = :user_id")
#: Delete all tokens that have expired before a time.
drop_expired: Callable[[Tx, datetime], None] = execute("DELETE FROM tokens WHERE expires_at < :before")


def add(tx: Tx, token_hash: str, new: Token) -> None:
    """Insert a token."""
    _TOKENS.add(tx, new, hash=token_hash)


def drop(tx: Tx, token_hash: str) -> None:
    """
    Delete a token and all tokens that were created from it, directly or indirectly.

    A transaction that creates a token locks the parent token first. Therefore a deleted token gets no more children,
    and the deletion by levels finds all of them.
    """
    level = [token_hash]
    while level:
        _drop_all(tx, level)
        level = _list_created_from(tx, level)
