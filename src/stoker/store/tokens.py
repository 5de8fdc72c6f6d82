"""Tokens in SQL, by their hashes."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from stoker.model.principal import Token
from stoker.store import rows
from stoker.store.schema import tokens
from stoker.store.tx import Tx

_ADD = sa.insert(tokens)
_ONE = sa.select(tokens).where(tokens.c.hash == sa.bindparam("hash"))
_DROP = sa.delete(tokens).where(tokens.c.hash == sa.bindparam("hash"))
_DROP_OF_USER = sa.delete(tokens).where(tokens.c.user_id == sa.bindparam("user"))
_DROP_EXPIRED = sa.delete(tokens).where(tokens.c.expires_at < sa.bindparam("now"))


def add(tx: Tx, token_hash: str, new: Token) -> None:
    tx.run(
        _ADD,
        {
            "hash": token_hash,
            "user_id": new.user_id,
            "project_id": new.project_id,
            "issued_at": rows.stamp(new.issued_at),
            "expires_at": rows.stamp(new.expires_at),
            "application_credential_id": new.application_credential_id,
            "methods": ",".join(new.methods),
        },
    )


def find(tx: Tx, token_hash: str) -> Token | None:
    row = tx.run(_ONE, {"hash": token_hash}).first()
    if row is None:
        return None
    return Token(
        user_id=row.user_id,
        project_id=row.project_id,
        issued_at=rows.moment(row.issued_at),
        expires_at=rows.moment(row.expires_at),
        application_credential_id=row.application_credential_id,
        methods=tuple((row.methods or "password").split(",")),
    )


def drop(tx: Tx, token_hash: str) -> None:
    tx.run(_DROP, {"hash": token_hash})


def drop_of_user(tx: Tx, user_id: str) -> None:
    tx.run(_DROP_OF_USER, {"user": user_id})


def drop_expired(tx: Tx, now: datetime) -> None:
    tx.run(_DROP_EXPIRED, {"now": rows.stamp(now)})
