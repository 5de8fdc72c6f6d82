"""Queries for accounts of the object store."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from stoker.model.objects import Account, Totals
from stoker.store import rows, statements
from stoker.store.containers import dump_headers
from stoker.store.repository import Repository
from stoker.store.schema import accounts, containers
from stoker.store.tx import Tx

_ACCOUNTS = Repository(Account, accounts)
# Two transactions may create the same account at a time: the later one finds the row of the first.
_ADD = statements.insert_new(accounts, "id")
_SET_HEADERS = statements.update(accounts, "headers")
# Summed over containers: with a row of totals, all writers of a project would wait for each other.
_TOTALS = sa.select(
    sa.func.count().label("number"),
    sa.cast(sa.func.coalesce(sa.func.sum(containers.c.objects), 0), sa.BigInteger).label("objects"),
    sa.cast(sa.func.coalesce(sa.func.sum(containers.c.bytes), 0), sa.BigInteger).label("size"),
).where(containers.c.account == sa.bindparam("account"))


def find(tx: Tx, account: str) -> Account | None:
    """Return the account, or None if no headers were ever set on it."""
    return _ACCOUNTS.find(tx, account)


def lock(tx: Tx, account: str) -> Account:
    """Return the account and lock it until the transaction ends; create it first if it does not exist."""
    tx.execute_fast(_ADD, _ACCOUNTS.encode(Account(id=account, created_at=rows.to_micros(tx.now)), tx.secrets))
    locked = _ACCOUNTS.find(tx, account, for_update=True)
    assert locked is not None, "it was made a line above"
    return locked


def change(tx: Tx, account: str, headers: Mapping[str, str]) -> None:
    """Replace the account's headers."""
    tx.execute_fast(_SET_HEADERS, {"key_id": account, "headers": dump_headers(tx, headers)})


def totals(tx: Tx, account: str) -> Totals:
    """Return the account's numbers of containers, objects and bytes."""
    row = tx.run(_TOTALS, {"account": account}).one()
    return Totals(containers=row.number, objects=row.objects, bytes=row.size)
