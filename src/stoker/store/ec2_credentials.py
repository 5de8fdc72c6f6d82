"""Queries for EC2 credentials."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.principal import Ec2Credential
from stoker.store.schema import ec2_credentials as table
from stoker.store.tx import Tx

_ADD = sa.insert(table)
_ONE = sa.select(table).where(table.c.access == sa.bindparam("access"))
_OF_USER = sa.select(table).where(table.c.user_id == sa.bindparam("user")).order_by(table.c.access)
_DELETE = sa.delete(table).where(table.c.access == sa.bindparam("access"))
_DELETE_OF_USER = sa.delete(table).where(table.c.user_id == sa.bindparam("user"))
_DELETE_IN_PROJECT = sa.delete(table).where(table.c.project_id == sa.bindparam("project"))


def add(tx: Tx, new: Ec2Credential) -> None:
    """Insert an EC2 credential."""
    tx.run(
        _ADD,
        {
            "access": new.access,
            "sealed_secret": new.sealed_secret,
            "user_id": new.user_id,
            "project_id": new.project_id,
        },
    )


def find(tx: Tx, access: str) -> Ec2Credential | None:
    """Return the credential with this access key, or None."""
    row = tx.run(_ONE, {"access": access}).first()
    return None if row is None else _credential(row)


def of_user(tx: Tx, user_id: str) -> list[Ec2Credential]:
    """Return the user's credentials, sorted by access key."""
    return [_credential(row) for row in tx.run(_OF_USER, {"user": user_id})]


def delete(tx: Tx, access: str) -> None:
    """Delete the credential with this access key."""
    tx.run(_DELETE, {"access": access})


def delete_of_user(tx: Tx, user_id: str) -> None:
    """Delete all credentials of a user."""
    tx.run(_DELETE_OF_USER, {"user": user_id})


def delete_in_project(tx: Tx, project_id: str) -> None:
    """Delete all credentials that are valid in a project."""
    tx.run(_DELETE_IN_PROJECT, {"project": project_id})


def _credential(row: Any) -> Ec2Credential:
    return Ec2Credential(
        access=row.access, sealed_secret=row.sealed_secret, user_id=row.user_id, project_id=row.project_id
    )
