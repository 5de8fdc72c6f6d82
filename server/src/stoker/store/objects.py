"""
Queries for accounts, containers and objects, and the listings of Swift's API. The row of a container has its totals. A
transaction that writes an object has locked its container.

Each page of a listing is one statement, however many names a folder represents. Names are compared by their bytes. With
a delimiter, all names that contain it after the prefix form one folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from stoker.model.embedded import Account, Container, Entry, Page, Stored, Totals
from stoker.store import rows
from stoker.store.query import execute
from stoker.store.repository import Repository
from stoker.store.sql import Statement, equal, sql
from stoker.store.tx import Tx

_ACCOUNTS = Repository(Account, "accounts")
_CONTAINERS = Repository(Container, "containers", key=("account", "name"))
#: Return an account, or None if no headers were ever set on it.
find_account = _ACCOUNTS.find
#: ``for_update`` locks the row of a container: no other transaction writes to the container.
find_container = _CONTAINERS.find
delete_container = _CONTAINERS.delete
_set_account_headers: Callable[[Tx, str, str], None] = execute("UPDATE accounts SET headers = :headers WHERE id = :id")
_set_headers: Callable[[Tx, str, str, str], None] = execute(
    "UPDATE containers SET headers = :headers WHERE account = :account AND name = :name"
)
_increase_totals: Callable[[Tx, int, int, str, str], None] = execute(
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


def add_container(tx: Tx, account: str, name: str, headers: Mapping[str, str], owner: str | None) -> bool:
    """
    Insert a container. Return False, and change nothing, if a container with this name exists, which another
    transaction may insert.
    """
    container = Container(account=account, name=name, owner=owner, headers=headers, created_at=rows.to_micros(tx.now))
    return _CONTAINERS.add(tx, container, unless_exists=True, headers=dump_headers(tx, headers))


def change_container(tx: Tx, account: str, name: str, headers: Mapping[str, str]) -> None:
    """Replace the container's headers."""
    _set_headers(tx, dump_headers(tx, headers), account, name)


def add_to_totals(tx: Tx, account: str, name: str, *, objects: int, size: int) -> None:
    """Add to the container's totals of objects and bytes."""
    _increase_totals(tx, objects, size, account, name)


_KEY = ("account", "container", "name")
#: All columns except for the data, which is large.
_OBJECTS = Repository(Stored, "objects", key=_KEY)
find, delete = _OBJECTS.find, _OBJECTS.delete
_WHOLE = sql(f"SELECT {_OBJECTS.columns}, data FROM objects WHERE {equal(*_KEY)}")
#: Delete all objects of a container.
delete_all: Callable[[Tx, str, str], None] = execute(
    "DELETE FROM objects WHERE account = :account AND container = :container"
)
#: Sorts after every possible name: names have at most 1,024 bytes.
_HIGHEST = "\U0010ffff" * 300
#: The columns of a listing beside the name, by the names of an entry's fields.
_OF_CONTAINER = {"size": "bytes", "objects": "objects", "modified_at": "created_at"}
_OF_OBJECT = {name: name for name in ("etag", "size", "content_type", "modified_at")}


def add(tx: Tx, new: Stored, data: bytes) -> None:
    """Insert an object."""
    _OBJECTS.add(tx, new, data=tx.secrets.encrypt_bytes(data) if new.encrypted else data)


def whole(tx: Tx, account: str, container: str, name: str) -> tuple[Stored, bytes] | None:
    """Return the object with its data, or None."""
    row = tx.execute_fast(_WHOLE, {"account": account, "container": container, "name": name})
    if row is None:
        return None
    stored, data = _OBJECTS.decode(row, tx.secrets), bytes(row[-1])
    return stored, tx.secrets.decrypt_bytes(data) if stored.encrypted else data


def change(tx: Tx, old: Stored, *, headers: Mapping[str, str], content_type: str, modified_at: int) -> None:
    """Replace an object's headers and content type, without its data."""
    changes: dict[str, Any] = {"headers": headers, "content_type": content_type, "modified_at": modified_at}
    _OBJECTS.update(tx, old.account, old.container, old.name, **changes)


def list_containers(tx: Tx, account: str, page: Page) -> list[Entry]:
    """Return a page of the listing of an account's containers."""
    return _list(tx, "containers", _OF_CONTAINER, {"account": account}, page)


def list_objects(tx: Tx, account: str, container: str, page: Page) -> list[Entry]:
    """Return a page of the listing of a container's objects."""
    return _list(tx, "objects", _OF_OBJECT, {"account": account, "container": container}, page)


def _list(tx: Tx, table: str, shown: Mapping[str, str], key: Mapping[str, str], page: Page) -> list[Entry]:
    values: dict[str, Any] = {
        **key,
        "marker": page.marker,
        "low": page.prefix,
        "high": _after_prefix(page.prefix),
        "limit": page.limit,
    }
    if page.delimiter:
        values["start"], values["delimiter"] = len(page.prefix) + 1, page.delimiter
        values["more"] = len(page.prefix) + len(page.delimiter) - 1
    statement = _listing(table, tuple(key), tuple(shown.items()), has_folders=bool(page.delimiter))
    return [
        Entry(name=name, folder=True) if folder else Entry(name=name, **dict(zip(shown, fields, strict=True)))
        for folder, name, *fields in tx.fetch_all(statement, values)
    ]


@cache
def _listing(table: str, key: tuple[str, ...], shown: tuple[tuple[str, str], ...], *, has_folders: bool) -> Statement:
    """Return the statement of a listing: of the rows with the prefix, ``low`` to ``high``, after the marker."""
    within = f"FROM {table} WHERE {equal(*key)} AND name > :marker AND name >= :low AND name < :high"
    columns = ", ".join(f"{column} AS {field}" for field, column in shown)
    if not has_folders:
        return sql(f"SELECT 0 AS folder, name, {columns} {within} ORDER BY name LIMIT :limit")
    # Subqueries, because PostgreSQL groups by a name: it treats each use of an expression with parameters as new.
    placed = f"SELECT name, @position(substr(name, :start), :delimiter) AS place, {columns} {within}"
    named = (
        "SELECT CASE WHEN place > 0 THEN substr(name, 1, place + :more) ELSE name END AS name,"
        " CASE WHEN place > 0 THEN 1 ELSE 0 END AS folder,"
        f" {', '.join(field for field, _ in shown)} FROM ({placed}) AS placed"
    )
    latest = ", ".join(f"max({field}) AS {field}" for field, _ in shown)
    return sql(
        f"SELECT max(folder) AS folder, name, {latest} FROM ({named}) AS named"
        " WHERE name <> :marker GROUP BY name ORDER BY name LIMIT :limit"
    )


def _after_prefix(prefix: str) -> str:
    """Return the first name that sorts after all names with this prefix."""
    bare = prefix.rstrip("\U0010ffff")
    if not bare:
        return _HIGHEST
    following = ord(bare[-1]) + 1
    return bare[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are not characters
