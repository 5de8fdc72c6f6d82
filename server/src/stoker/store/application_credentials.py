"""Queries for application credentials."""

from __future__ import annotations

from stoker.model.principal import ApplicationCredential
from stoker.store.repository import Repository
from stoker.store.sql import delete as delete_from
from stoker.store.tx import Tx

_CREDENTIALS = Repository(ApplicationCredential, "application_credentials")
_NAMED = _CREDENTIALS.by("user_id", "name")
_OF_USER = _CREDENTIALS.select("user_id = :user_id ORDER BY name")
_DELETE_OF_USER = delete_from("application_credentials", "user_id")
_DELETE_IN_PROJECT = delete_from("application_credentials", "project_id")


def add(tx: Tx, new: ApplicationCredential) -> None:
    """Insert an application credential."""
    _CREDENTIALS.add(tx, new)


def find(tx: Tx, id: str) -> ApplicationCredential | None:
    """Return the application credential with this id, or None."""
    return _CREDENTIALS.find(tx, id)


def find_by_name(tx: Tx, user_id: str, name: str) -> ApplicationCredential | None:
    """Return the user's application credential with this name, or None."""
    return _CREDENTIALS.first(tx, _NAMED, {"user_id": user_id, "name": name})


def of_user(tx: Tx, user_id: str) -> list[ApplicationCredential]:
    """Return the user's application credentials, sorted by name."""
    return _CREDENTIALS.all(tx, _OF_USER, {"user_id": user_id})


def delete(tx: Tx, id: str) -> None:
    """Delete the application credential with this id."""
    _CREDENTIALS.delete(tx, id)


def delete_of_user(tx: Tx, user_id: str) -> None:
    """Delete all application credentials of a user."""
    tx.execute_fast(_DELETE_OF_USER, {"user_id": user_id})


def delete_in_project(tx: Tx, project_id: str) -> None:
    """Delete all application credentials that are valid in a project."""
    tx.execute_fast(_DELETE_IN_PROJECT, {"project_id": project_id})
