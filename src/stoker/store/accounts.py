"""Queries for accounts of the object store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.objects import Account, Totals
from stoker.store import rows
from stoker.store.containers import dump_headers
from stoker.store.schema import accounts, containers
from stoker.store.tx import Tx

# Two transactions may create the same account at a time: the later one finds the row of the first.
_MAKE = sa.text(
    "INSERT INTO accounts (id, headers, created_at) VALUES (:id, :headers, :created_at) ON CONFLICT (id) DO NOTHING"
)
_ONE = sa.select(accounts).where(accounts.c.id == sa.bindparam("account"))
_LOCKED = _ONE.with_for_update()
_CHANGE = (
    sa.update(accounts).where(accounts.c.id == sa.bindparam("account")).values(headers=sa.bindparam("new_headers"))
)
# Summed over containers: with a row of totals, all writers of a project would wait for each other.
_TOTALS = sa.select(
    sa.func.count().label("number"),
    sa.cast(sa.func.coalesce(sa.func.sum(containers.c.objects), 0), sa.BigInteger).label("objects"),
    sa.cast(sa.func.coalesce(sa.func.sum(containers.c.bytes), 0), sa.BigInteger).label("size"),
).where(containers.c.account == sa.bindparam("account"))


def find(tx: Tx, account: str) -> Account | None:
    """Return the account, or None if no headers were ever set on it."""
    return _account(tx, account, _ONE)


def lock(tx: Tx, account: str) -> Account:
    """Return the account and lock it until the transaction ends; create it first if it does not exist."""
    tx.run(_MAKE, {"id": account, "headers": rows.dump({}), "created_at": rows.to_micros(tx.now)})
    found = _account(tx, account, _LOCKED)
    assert found is not None, "it was made a line above"
    return found


def change(tx: Tx, account: str, headers: Mapping[str, str]) -> None:
    """Replace the account's headers."""
    tx.run(_CHANGE, {"account": account, "new_headers": dump_headers(tx, headers)})


def totals(tx: Tx, account: str) -> Totals:
    """Return the account's numbers of containers, objects and bytes."""
    row = tx.run(_TOTALS, {"account": account}).one()
    return Totals(containers=row.number, objects=row.objects, bytes=row.size)


def _account(tx: Tx, account: str, statement: sa.Select[Any]) -> Account | None:
    row = tx.run(statement, {"account": account}).first()
    return None if row is None else Account(id=row.id, headers=tx.secrets.load(row.headers), created_at=row.created_at)
