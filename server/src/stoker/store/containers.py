"""Queries for accounts and containers of the object store. The row of a container has its totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stoker.model.objects import Account, Container, Totals
from stoker.store import rows
from stoker.store.query import execute
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

_ACCOUNTS = Repository(Account, "accounts")
_CONTAINERS = Repository(Container, "containers", key=("account", "name"))
#: Return an account, or None if no headers were ever set on it.
find_account = _ACCOUNTS.find
#: ``for_update`` locks the row of a container: no other transaction writes to the container.
find = _CONTAINERS.find
delete = _CONTAINERS.delete
_set_account_headers: Callable[[Tx, str, str], None] = execute("UPDATE accounts SET headers = :headers WHERE id = :id")
_set_headers: Callable[[Tx, str, str, str], None] = execute(
    "UPDATE containers SET headers = :headers WHERE account = :account AND name = :name"
)
_add_to_totals: Callable[[Tx, int, int, str, str], None] = execute(
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


def lock_account(tx: Tx, account: str) -> Account:
    """Return the account and lock it until the transaction ends; create it first if it does not exist."""
    _ACCOUNTS.add(tx, Account(id=account, created_at=rows.to_micros(tx.now)), unless_exists=True)
    locked = _ACCOUNTS.find(tx, account, for_update=True)
    assert locked is not None, "it was made a line above"
    return locked


def change_account(tx: Tx, account: str, headers: Mapping[str, str]) -> None:
    """Replace the account's headers."""
    _set_account_headers(tx, dump_headers(tx, headers), account)


def totals(tx: Tx, account: str) -> Totals:
    """Return the account's numbers of containers, objects and bytes."""
    containers, objects, size = tx.execute_fast(_TOTALS, {"account": account})
    return Totals(containers=containers, objects=objects, bytes=size)


def add(tx: Tx, account: str, name: str, headers: Mapping[str, str], owner: str | None) -> bool:
    """
    Insert a container. Return False, and change nothing, if a container with this name exists, which another
    transaction may insert.
    """
    container = Container(account=account, name=name, owner=owner, headers=headers, created_at=rows.to_micros(tx.now))
    return _CONTAINERS.add(tx, container, unless_exists=True, headers=dump_headers(tx, headers))


def change(tx: Tx, account: str, name: str, headers: Mapping[str, str]) -> None:
    """Replace the container's headers."""
    _set_headers(tx, dump_headers(tx, headers), account, name)


def count(tx: Tx, account: str, name: str, *, objects: int, size: int) -> None:
    """Add to the container's totals of objects and bytes."""
    _add_to_totals(tx, objects, size, account, name)
