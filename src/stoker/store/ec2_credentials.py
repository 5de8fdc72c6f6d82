"""Queries for EC2 credentials."""

from __future__ import annotations

from stoker.model.principal import Ec2Credential
from stoker.store import statements
from stoker.store.repository import Repository
from stoker.store.schema import ec2_credentials
from stoker.store.tx import Tx

_CREDENTIALS = Repository(Ec2Credential, ec2_credentials, key=("access",))
_OF_USER = _CREDENTIALS.by("user_id").order_by(ec2_credentials.c.access)
_DELETE_OF_USER = statements.delete(ec2_credentials, "user_id")
_DELETE_IN_PROJECT = statements.delete(ec2_credentials, "project_id")


def add(tx: Tx, new: Ec2Credential) -> None:
    """Insert an EC2 credential. Its secret is always encrypted."""
    _CREDENTIALS.add(tx, new, encrypt=("secret",))


def find(tx: Tx, access: str) -> Ec2Credential | None:
    """Return the credential with this access key, or None."""
    return _CREDENTIALS.find(tx, access)


def of_user(tx: Tx, user_id: str) -> list[Ec2Credential]:
    """Return the user's credentials, sorted by access key."""
    return _CREDENTIALS.all(tx, _OF_USER, {"user_id": user_id})


def delete(tx: Tx, access: str) -> None:
    """Delete the credential with this access key."""
    _CREDENTIALS.delete(tx, access)


def delete_of_user(tx: Tx, user_id: str) -> None:
    """Delete all credentials of a user."""
    tx.execute_fast(_DELETE_OF_USER, {"user_id": user_id})


def delete_in_project(tx: Tx, project_id: str) -> None:
    """Delete all credentials that are valid in a project."""
    tx.execute_fast(_DELETE_IN_PROJECT, {"project_id": project_id})
