"""Queries for tokens, by their hashes."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from stoker.model.principal import Token
from stoker.store import rows
from stoker.store.schema import tokens
from stoker.store.tx import Tx

_ADD = sa.insert(tokens)
_ONE = sa.select(tokens).where(tokens.c.hash == sa.bindparam("hash"))
_LOCKED = _ONE.with_for_update()
_DROP = sa.delete(tokens).where(tokens.c.hash.in_(sa.bindparam("hashes", expanding=True)))
_MADE_FROM = sa.select(tokens.c.hash).where(tokens.c.parent_hash.in_(sa.bindparam("hashes", expanding=True)))
_DROP_OF_USER = sa.delete(tokens).where(tokens.c.user_id == sa.bindparam("user"))
_DROP_EXPIRED = sa.delete(tokens).where(tokens.c.expires_at < sa.bindparam("now"))


def add(tx: Tx, token_hash: str, new: Token) -> None:
    """Insert a token."""
    tx.run(
        _ADD,
        {
            "hash": token_hash,
            "user_id": new.user_id,
            "project_id": new.project_id,
            "issued_at": rows.to_micros(new.issued_at),
            "expires_at": rows.to_micros(new.expires_at),
            "application_credential_id": new.application_credential_id,
            "system": new.system,
            "parent_hash": new.parent_hash,
            "methods": ",".join(new.methods),
        },
    )


def find(tx: Tx, token_hash: str, *, for_update: bool = False) -> Token | None:
    """Return the token, or None. ``for_update`` locks its row, so that it is not revoked until the transaction ends."""
    row = tx.run(_LOCKED if for_update else _ONE, {"hash": token_hash}).first()
    if row is None:
        return None
    return Token(
        user_id=row.user_id,
        project_id=row.project_id,
        issued_at=rows.from_micros(row.issued_at),
        expires_at=rows.from_micros(row.expires_at),
        application_credential_id=row.application_credential_id,
        system=row.system,
        parent_hash=row.parent_hash,
        methods=tuple((row.methods or "password").split(",")),
    )


def drop(tx: Tx, token_hash: str) -> None:
    """
    Delete a token and all tokens that were created from it, directly or indirectly.

    A transaction that creates a token locks the parent token first. Therefore a deleted token gets no more children,
    and the deletion by levels finds all of them.
    """
    level = [token_hash]
    while level:
        children: list[str] = []
        for hashes in rows.portions(level):
            tx.run(_DROP, {"hashes": hashes})
            children += tx.run(_MADE_FROM, {"hashes": hashes}).scalars()
        level = children


def drop_of_user(tx: Tx, user_id: str) -> None:
    """Delete all tokens of a user."""
    tx.run(_DROP_OF_USER, {"user": user_id})


def drop_expired(tx: Tx, now: datetime) -> None:
    """Delete all tokens that have expired at the time ``now``."""
    tx.run(_DROP_EXPIRED, {"now": rows.to_micros(now)})
