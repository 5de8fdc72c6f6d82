"""Queries for relays."""

from __future__ import annotations

from datetime import datetime

from stoker.model.errors import Conflict
from stoker.model.relay import Relay
from stoker.store.repository import Repository, require
from stoker.store.sql import delete as delete_by
from stoker.store.tx import Tx

_RELAYS = Repository(Relay, "relays")
_LIST = _RELAYS.select("project_id = :project_id ORDER BY name")
_NAMED = _RELAYS.by("project_id", "name")
_DELETE_IN_PROJECT = delete_by("relays", "project_id")


def add(tx: Tx, new: Relay) -> None:
    """Insert a relay. Raises Conflict if another one of the project has its name."""
    if not _RELAYS.add(tx, new, unless_exists=True):
        raise Conflict(f"A relay named {new.name!r} exists already: choose another name, or delete that relay first.")


def find(tx: Tx, id: str) -> Relay | None:
    """Return a relay, or None."""
    return _RELAYS.find(tx, id)


def get(tx: Tx, id: str, project_id: str) -> Relay:
    """Return a relay of the project. Raises EntityNotFound."""
    return require(_RELAYS.find(tx, id), "Relay", id, project_id)


def find_by_name(tx: Tx, project_id: str, name: str) -> Relay | None:
    """Return the project's relay of this name, or None."""
    return _RELAYS.first(tx, _NAMED, {"project_id": project_id, "name": name})


def list_all(tx: Tx, project_id: str) -> list[Relay]:
    """Return the project's relays, sorted by name."""
    return _RELAYS.all(tx, _LIST, {"project_id": project_id})


def record_seen(tx: Tx, id: str, at: datetime, version: str | None) -> None:
    """Record the time of the relay's last request, and its version."""
    _RELAYS.update(tx, id, last_seen=at, version=version)


def delete(tx: Tx, id: str) -> None:
    """Delete a relay. Its key becomes invalid."""
    _RELAYS.delete(tx, id)


def delete_in_project(tx: Tx, project_id: str) -> None:
    """Delete the relays of a project."""
    tx.execute_fast(_DELETE_IN_PROJECT, {"project_id": project_id})
