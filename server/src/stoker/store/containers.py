"""Queries for accounts and containers of the object store. The row of a container has its totals."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.objects import Account, Container, Totals
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import insert, sql, update
from stoker.store.tx import Tx

_ACCOUNTS = Repository(Account, "accounts")
_CONTAINERS = Repository(Container, "containers", key=("account", "name"))
# Two transactions may create the same account or container at a time: the later one finds the row of the first.
_ADD_ACCOUNT = sql(f"{insert('accounts', *_ACCOUNTS.codec.written).text} ON CONFLICT (id) DO NOTHING")
_ADD = sql(
    f"{insert('containers', *_CONTAINERS.codec.written).text} ON CONFLICT (account, name) DO NOTHING RETURNING name"
)
_SET_ACCOUNT_HEADERS = update("accounts", "headers")
_SET_HEADERS = update("containers", "headers", key=("account", "name"))
_COUNT = sql(
    "UPDATE containers SET objects = objects + :more_objects, bytes = bytes + :more_bytes"
    " WHERE account = :account AND name = :name"
)
# Summed over containers: with a row of totals, all writers of a project would wait for each other.
_TOTALS = sql(
    "SELECT count(*), CAST(coalesce(sum(objects), 0) AS bigint), CAST(coalesce(sum(bytes), 0) AS bigint)"
    " FROM containers WHERE account = :account"
)


def dump_headers(tx: Tx, headers: Mapping[str, str]) -> str:
    """Serialize the headers of an account or container; encrypt them if they contain keys that sign URLs."""
    return tx.secrets.dump(headers, always=any("temp-url-key" in name for name in headers))


def find_account(tx: Tx, account: str) -> Account | None:
    """Return the account, or None if no headers were ever set on it."""
    return _ACCOUNTS.find(tx, account)


def lock_account(tx: Tx, account: str) -> Account:
    """Return the account and lock it until the transaction ends; create it first if it does not exist."""
    tx.execute_fast(_ADD_ACCOUNT, _ACCOUNTS.encode(Account(id=account, created_at=rows.to_micros(tx.now)), tx.secrets))
    locked = _ACCOUNTS.find(tx, account, for_update=True)
    assert locked is not None, "it was made a line above"
    return locked


def change_account(tx: Tx, account: str, headers: Mapping[str, str]) -> None:
    """Replace the account's headers."""
    tx.execute_fast(_SET_ACCOUNT_HEADERS, {"key_id": account, "headers": dump_headers(tx, headers)})


def totals(tx: Tx, account: str) -> Totals:
    """Return the account's numbers of containers, objects and bytes."""
    containers, objects, size = tx.execute_fast(_TOTALS, {"account": account})
    return Totals(containers=containers, objects=objects, bytes=size)


def add(tx: Tx, account: str, name: str, headers: Mapping[str, str], owner: str | None) -> bool:
    """Insert a container. Return False, and change nothing, if a container with this name exists."""
    container = Container(account=account, name=name, owner=owner, headers=headers, created_at=rows.to_micros(tx.now))
    values = _CONTAINERS.encode(container, tx.secrets) | {"headers": dump_headers(tx, headers)}
    return tx.execute_fast(_ADD, values) is not None


def find(tx: Tx, account: str, name: str, *, for_update: bool = False) -> Container | None:
    """Return the container, or None. ``for_update`` locks its row: no other transaction writes to the container."""
    return _CONTAINERS.find(tx, account, name, for_update=for_update)


def change(tx: Tx, account: str, name: str, headers: Mapping[str, str]) -> None:
    """Replace the container's headers."""
    values = {"key_account": account, "key_name": name, "headers": dump_headers(tx, headers)}
    tx.execute_fast(_SET_HEADERS, values)


def count(tx: Tx, account: str, name: str, *, objects: int, size: int) -> None:
    """Add to the container's totals of objects and bytes."""
    tx.execute_fast(_COUNT, {"account": account, "name": name, "more_objects": objects, "more_bytes": size})


def delete(tx: Tx, account: str, name: str) -> None:
    """Delete the container."""
    _CONTAINERS.delete(tx, account, name)
