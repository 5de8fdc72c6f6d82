"""Queries for relays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from stoker.model.errors import Conflict
from stoker.model.relay import Relay
from stoker.store.query import execute
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_RELAYS = Repository(Relay, "relays", noun="Relay")
find, get, delete = _RELAYS.find, _RELAYS.get, _RELAYS.delete
find_by_name: Callable[[Tx, str, str], Relay | None] = _RELAYS.finder("project_id = :project_id AND name = :name")
#: Return the relays of a project, sorted by name.
list_all: Callable[[Tx, str], list[Relay]] = _RELAYS.lister("project_id = :project_id ORDER BY name")
delete_in_project: Callable[[Tx, str], None] = execute("DELETE FROM relays WHERE project_id = :project_id")


def add(tx: Tx, new: Relay) -> None:
    """Insert a relay. Raises Conflict if another one of the project has its name."""
    if not _RELAYS.add(tx, new, unless_exists=True):
        raise Conflict(f"A relay named {new.name!r} exists already: choose another name, or delete that relay first.")


def record_seen(tx: Tx, id: str, at: datetime, agents: int, version: str | None) -> None:
    """Record the time of the relay's last request, the number of its agents, and its version."""
    _RELAYS.update(tx, id, last_seen=at, agents=agents, version=version)
