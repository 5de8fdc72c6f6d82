"""The object store's accounts in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.objects import Account, Totals
from stoker.store import rows
from stoker.store.schema import accounts, containers
from stoker.store.tx import Tx

# Two who make the same account at once: the later one finds it made.
_MAKE = sa.text(
    "INSERT INTO accounts (id, headers, created_at) VALUES (:id, :headers, :created_at) ON CONFLICT (id) DO NOTHING"
)
_ONE = sa.select(accounts).where(accounts.c.id == sa.bindparam("account"))
_HELD = _ONE.with_for_update()
_CHANGE = (
    sa.update(accounts).where(accounts.c.id == sa.bindparam("account")).values(headers=sa.bindparam("new_headers"))
)
# Summed over containers: a row of totals would have all writers of a project wait for each other.
_TOTALS = sa.select(
    sa.func.count().label("number"),
    sa.cast(sa.func.coalesce(sa.func.sum(containers.c.objects), 0), sa.BigInteger).label("objects"),
    sa.cast(sa.func.coalesce(sa.func.sum(containers.c.bytes), 0), sa.BigInteger).label("size"),
).where(containers.c.account == sa.bindparam("account"))


def find(tx: Tx, account: str) -> Account | None:
    """None for one that nothing was ever said about."""
    return _account(tx, account, _ONE)


def hold(tx: Tx, account: str) -> Account:
    """Made if it was not there, and kept from others until the transaction ends."""
    tx.run(_MAKE, {"id": account, "headers": rows.dump({}), "created_at": rows.stamp(tx.now)})
    found = _account(tx, account, _HELD)
    assert found is not None, "it was made a line above"
    return found


def change(tx: Tx, account: str, headers: Mapping[str, str]) -> None:
    tx.run(_CHANGE, {"account": account, "new_headers": rows.dump(headers)})


def totals(tx: Tx, account: str) -> Totals:
    row = tx.run(_TOTALS, {"account": account}).one()
    return Totals(containers=row.number, objects=row.objects, bytes=row.size)


def _account(tx: Tx, account: str, statement: sa.Select[Any]) -> Account | None:
    row = tx.run(statement, {"account": account}).first()
    return None if row is None else Account(id=row.id, headers=rows.load(row.headers), created_at=row.created_at)
