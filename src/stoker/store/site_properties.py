"""Queries for site properties: named values that all processes on this database share."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store import statements
from stoker.store.schema import site_properties
from stoker.store.tx import Tx

_GET = sa.select(site_properties.c.value).where(*statements.equal(site_properties, "name"))
_ADD = statements.insert_new(site_properties, "name")
_SET = sa.text(
    "INSERT INTO site_properties (name, value) VALUES (:name, :value)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def get(tx: Tx, name: str) -> str | None:
    """Return the property's value, or None if it is not set."""
    value: str | None = tx.scalar(_GET, {"name": name})
    return value


def add(tx: Tx, name: str, value: str) -> str:
    """Set a property unless it has a value. Return its value, which another process may have set."""
    tx.execute_fast(_ADD, {"name": name, "value": value})
    return get(tx, name) or value


def replace(tx: Tx, name: str, value: str) -> None:
    """Set a property, and overwrite any previous value."""
    tx.execute_fast(_SET, {"name": name, "value": value})
