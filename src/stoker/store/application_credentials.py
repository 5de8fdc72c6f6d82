"""Queries for application credentials."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.principal import ApplicationCredential
from stoker.store import rows
from stoker.store.schema import application_credentials as table
from stoker.store.tx import Tx

_ADD = sa.insert(table)
_ONE = sa.select(table).where(table.c.id == sa.bindparam("id"))
_NAMED = sa.select(table).where(table.c.user_id == sa.bindparam("user"), table.c.name == sa.bindparam("name"))
_OF_USER = sa.select(table).where(table.c.user_id == sa.bindparam("user")).order_by(table.c.name)
_DELETE = sa.delete(table).where(table.c.id == sa.bindparam("id"))
_DELETE_OF_USER = sa.delete(table).where(table.c.user_id == sa.bindparam("user"))
_DELETE_IN_PROJECT = sa.delete(table).where(table.c.project_id == sa.bindparam("project"))


def add(tx: Tx, new: ApplicationCredential) -> None:
    """Insert an application credential."""
    tx.run(
        _ADD,
        {
            "id": new.id,
            "user_id": new.user_id,
            "project_id": new.project_id,
            "name": new.name,
            "description": new.description,
            "secret_hash": new.secret_hash,
            "roles": rows.dump(new.roles),
            "unrestricted": new.unrestricted,
            "expires_at": rows.to_micros_optional(new.expires_at),
        },
    )


def find(tx: Tx, id: str) -> ApplicationCredential | None:
    """Return the application credential with this id, or None."""
    row = tx.run(_ONE, {"id": id}).first()
    return None if row is None else _credential(row)


def find_by_name(tx: Tx, user_id: str, name: str) -> ApplicationCredential | None:
    """Return the user's application credential with this name, or None."""
    row = tx.run(_NAMED, {"user": user_id, "name": name}).first()
    return None if row is None else _credential(row)


def of_user(tx: Tx, user_id: str) -> list[ApplicationCredential]:
    """Return the user's application credentials, sorted by name."""
    return [_credential(row) for row in tx.run(_OF_USER, {"user": user_id})]


def delete(tx: Tx, id: str) -> None:
    """Delete the application credential with this id."""
    tx.run(_DELETE, {"id": id})


def delete_of_user(tx: Tx, user_id: str) -> None:
    """Delete all application credentials of a user."""
    tx.run(_DELETE_OF_USER, {"user": user_id})


def delete_in_project(tx: Tx, project_id: str) -> None:
    """Delete all application credentials that are valid in a project."""
    tx.run(_DELETE_IN_PROJECT, {"project": project_id})


def _credential(row: Any) -> ApplicationCredential:
    return ApplicationCredential(
        id=row.id,
        user_id=row.user_id,
        project_id=row.project_id,
        name=row.name,
        description=row.description,
        secret_hash=row.secret_hash,
        roles=tuple(rows.load(row.roles)),
        unrestricted=row.unrestricted,
        expires_at=rows.from_micros_optional(row.expires_at),
    )
