"""
Lists of servers: pages of a project's servers, the servers that a selector selects, and the groups of stacks whose
members these are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Literal

from stoker.model.selectors import Selectable, Selector
from stoker.model.server import AgentAccess, Server
from stoker.store import rows, servers
from stoker.store.query import column, execute
from stoker.store.servers import SERVERS, STATUS
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: The place of a server in lists, which are sorted by age: its ``created_at`` in microseconds, and its id.
Position = tuple[int, str]

#: The orders of a list, descending with a minus.
Order = Literal[
    "name", "-name", "status", "-status", "last_seen", "-last_seen", "agent_version", "-agent_version", "created_at",
    "-created_at",
]  # fmt: skip
_DIGITS = re.compile(r"(\d+)")

_BEGINNING: Position = (-1, "")
#: Servers that a selection reads at a time: at first, and at most. If labels are required, each part searches their
#: index again, so the parts grow.
_FIRST, _MOST = 1000, 32_000
_GROWTH = 4
#: Labels that fewer than one of so many servers has are searched in their index.
_RARE = 8

_CREATED, _ID, _LABELS = (SERVERS.codec.written.index(name) for name in ("created_at", "id", "labels"))

#: The first ``:limit`` rows after the position ``:created_at``, ``:id``.
_AFTER = "(created_at, id) > (:created_at, :id)"
_FOLLOWING = f"{_AFTER} ORDER BY created_at, id LIMIT :limit"
_PAGE = SERVERS.select(f"project_id = :project_id AND {_FOLLOWING}")
_PAGE_OF = SERVERS.select(f"project_id = :project_id AND id @in(ids) AND {_FOLLOWING}")
#: Servers that wait for approval, or have left, are never selected: nothing would run there.
_SELECTABLE = f"project_id = :project_id AND agent_access = '{AgentAccess.ALLOWED}'"
_FACTS = "LEFT JOIN server_facts ON server_facts.server_id = servers.id"
_WITH_FACTS = f"SELECT {SERVERS.columns}, server_facts.facts FROM servers {_FACTS}"
_SELECTED = SERVERS.select(f"{_SELECTABLE} AND {_FOLLOWING}")
_SELECTED_WITH_FACTS = sql(f"{_WITH_FACTS} WHERE {_SELECTABLE} AND {_FOLLOWING}")
#: PostgreSQL finds the servers with the labels by an index before it sorts them. It would otherwise expect to find the
#: first ones sooner by reading all servers in their order.
_LABELED_IDS = sql(
    f"WITH labeled AS MATERIALIZED (SELECT created_at, id FROM servers WHERE {_SELECTABLE} AND @has_labels(labels))"
    f" SELECT id FROM labeled WHERE {_FOLLOWING}"
)
#: The same among the next ``:window`` servers. If many servers have the labels, this sorts none of them.
_IDS_IN_WINDOW = sql(
    f"WITH next_servers AS MATERIALIZED (SELECT created_at, id, labels FROM servers WHERE {_SELECTABLE} AND {_AFTER}"
    " ORDER BY created_at, id LIMIT :window)"
    " SELECT id FROM next_servers WHERE @has_labels(labels) ORDER BY created_at, id LIMIT :limit"
)
_NAMED_IDS = sql(
    "SELECT id FROM servers WHERE project_id = :project_id AND name @in(names)"
    " UNION SELECT id FROM servers WHERE project_id = :project_id AND id @in(names)"
)
_NAMES = sql("SELECT id, name FROM servers WHERE project_id = :project_id")
_STATES = sql(
    f"SELECT id, {STATUS}, coalesce(agent_version, :version) != :version FROM servers WHERE project_id = :project_id"
)
_SORTED = {
    name: sql(f"SELECT id, {value} FROM servers WHERE project_id = :project_id ORDER BY created_at, id")
    for name, value in (
        ("name", "name"),
        ("status", STATUS),
        ("last_seen", "coalesce(last_seen, 0)"),
        ("agent_version", "coalesce(agent_version, '')"),
        ("created_at", "created_at"),
    )
}
_ALL_FACTS = sql(f"SELECT labels, server_facts.facts FROM servers {_FACTS} WHERE project_id = :project_id")
_PROBLEMS = sql(
    "SELECT servers.id, servers.name, server_facts.problem, servers.last_seen FROM server_facts"
    " JOIN servers ON servers.id = server_facts.server_id"
    " WHERE server_facts.problem IS NOT NULL AND servers.project_id = :project_id ORDER BY servers.name LIMIT :limit"
)
_SEVERAL = SERVERS.select("id @in(ids) ORDER BY created_at, id")
_SEVERAL_WITH_FACTS = sql(f"{_WITH_FACTS} WHERE id @in(ids) ORDER BY created_at, id")


def position(tx: Tx, project_id: str, marker: str | None) -> Position | None:
    """Return the position of the server with the id ``marker``; None if it is no server of the project."""
    server = servers.find(tx, marker) if marker else None
    if server is None or server.project_id != project_id:
        return None
    return rows.to_micros(server.created_at), server.id


def page(
    tx: Tx, project_id: str, limit: int, after: Position | None = None, ids: Collection[str] | None = None
) -> list[tuple[Position, Server]]:
    """
    Return at most ``limit`` of the project's servers with their positions, oldest first: those after ``after``.

    ``ids`` restricts them to the servers with these ids.
    """
    values = _values(project_id, limit, after)
    if ids is not None:
        values["ids"] = rows.dump(list(ids))
    stored = tx.fetch_all(_PAGE if ids is None else _PAGE_OF, values)
    return [(_position_of(row), SERVERS.decode(row, tx.secrets)) for row in stored]


def find_named(tx: Tx, project_id: str, names: Collection[str]) -> Collection[str]:
    """Return the ids of the project's servers with these names or ids. A name may be a pattern, such as ``web*``."""
    patterns = [name for name in names if not {"*", "?", "["}.isdisjoint(name)]
    exact = {"project_id": project_id, "names": rows.dump([name for name in names if name not in patterns])}
    ids = {id for (id,) in tx.fetch_all(_NAMED_IDS, exact)}
    if patterns:
        named = tx.fetch_all(_NAMES, {"project_id": project_id})
        ids |= {id for id, name in named if any(fnmatchcase(name, pattern) for pattern in patterns)}
    return ids


def list_states(tx: Tx, project_id: str, online_since: datetime, version: str) -> list[tuple[str, str, bool]]:
    """
    Return the id and the status of each server of the project, and whether its agent has another version than this.

    Servers that were seen after ``online_since`` are online.
    """
    values = {"project_id": project_id, "online_since": rows.to_micros(online_since), "version": version}
    return [(id, status, bool(outdated)) for id, status, outdated in tx.fetch_all(_STATES, values)]


def sort_ids(tx: Tx, project_id: str, order: Order, online_since: datetime) -> list[str]:
    """
    Return the ids of the project's servers in an order.

    Numbers in texts count by their values: ``web2`` comes before ``web10``. Servers that were seen after
    ``online_since`` are online.
    """
    values = {"project_id": project_id, "online_since": rows.to_micros(online_since)}
    stored = tx.fetch_all(_SORTED[order.removeprefix("-")], values)
    return [id for id, _ in sorted(stored, key=lambda row: _natural_key(row[1]), reverse=order.startswith("-"))]


def _natural_key(value: str | int) -> Any:
    if isinstance(value, int):
        return value
    return [(part.isdecimal(), int(part) if part.isdecimal() else part) for part in _DIGITS.split(value)]


def iterate_facts(tx: Tx, project_id: str) -> Iterator[tuple[Mapping[str, str], Mapping[str, Any]]]:
    """Yield the labels and the facts of each server of the project."""
    for labels, facts in tx.fetch_all(_ALL_FACTS, {"project_id": project_id}):
        yield rows.load(labels), rows.load(facts) if facts else {}


def list_problems(tx: Tx, project_id: str, limit: int) -> list[tuple[str, str, str, datetime | None]]:
    """Return the id, the name, the problem and the last heartbeat of servers whose agents can start no run."""
    problems = tx.fetch_all(_PROBLEMS, {"project_id": project_id, "limit": limit})
    return [(*row[:3], None if row[3] is None else rows.from_micros(row[3])) for row in problems]


def iterate_selected(
    tx: Tx, project_id: str, selector: Selector, after: Position | None = None
) -> Iterator[tuple[Position, Server]]:
    """
    Yield the project's servers that the selector selects with their positions, oldest first: those after ``after``.

    Servers that wait for approval, or have left, are not among them. Without a label that all selected servers must
    have, all servers of the project are read.
    """
    required = selector.required_labels
    for row in _iterate_candidates(tx, project_id, selector, after):
        if _is_selected(selector, required, row[_LABELS], *row[len(SERVERS.codec.written) :]):
            yield _position_of(row), SERVERS.decode(row, tx.secrets)


def find_by_selector(tx: Tx, project_id: str, selector: Selector) -> list[Server]:
    """Return the servers of ``iterate_selected``, sorted by name."""
    selected = (server for _, server in iterate_selected(tx, project_id, selector))
    return sorted(selected, key=lambda server: (server.name, server.id))


def _iterate_candidates(tx: Tx, project_id: str, selector: Selector, after: Position | None) -> Iterator[Any]:
    """Yield the rows of the servers that the selector may select, read in parts."""
    required = selector.required_labels
    limit = _FIRST
    is_rare = False
    while True:
        values = _values(project_id, limit, after)
        if required:
            ids, is_rare = _find_labeled(tx, {**values, "required": rows.dump(required)}, is_rare)
            part = tx.fetch_all(_SEVERAL_WITH_FACTS if selector.names_facts else _SEVERAL, {"ids": rows.dump(ids)})
        else:
            part = tx.fetch_all(_SELECTED_WITH_FACTS if selector.names_facts else _SELECTED, values)
        yield from part
        if len(part) < limit:
            return
        after = _position_of(part[-1])
        limit = min(limit * _GROWTH, _MOST)


def _find_labeled(tx: Tx, values: Mapping[str, Any], is_rare: bool) -> tuple[list[str], bool]:
    """
    Return the ids of the next servers with the labels, and whether the labels are rare.

    ``is_rare`` states that an earlier part has shown it.
    """
    limit = values["limit"]
    if not is_rare:
        ids = [row[0] for row in tx.fetch_all(_IDS_IN_WINDOW, {**values, "window": limit * _RARE})]
        if len(ids) == limit:
            return ids, False
    return [row[0] for row in tx.fetch_all(_LABELED_IDS, values)], True


def _values(project_id: str, limit: int, after: Position | None) -> dict[str, Any]:
    created_at, id = after or _BEGINNING
    return {"project_id": project_id, "limit": limit, "created_at": created_at, "id": id}


def _position_of(row: Any) -> Position:
    return row[_CREATED], row[_ID]


def _is_selected(selector: Selector, required: Mapping[str, str], labels: str, facts: str | None = None) -> bool:
    """Return whether the selector selects a server with these columns. Facts are decoded only if labels permit."""
    stored: Mapping[str, str] = rows.load(labels)
    if not required.items() <= stored.items():
        return False
    return selector.matches(Selectable(stored, rows.load(facts) if facts else {}))


#: Insert or replace the selector of a group resource: (transaction, resource id, project id, labels, text). The group
#: no longer waits for a stack.
put_selector: Callable[[Tx, str, str, Mapping[str, str], str | None], None] = execute(
    "INSERT INTO selectors (resource_id, project_id, labels, text) VALUES (:resource, :project, :labels, :text)"
    " ON CONFLICT (resource_id) DO UPDATE SET labels = :labels, text = :text, waits_for = NULL"
)
#: Delete the selector of a group resource.
remove_selector: Callable[[Tx, str], None] = execute("DELETE FROM selectors WHERE resource_id = :resource_id")
_OF_PROJECT = sql("SELECT resource_id, labels, text FROM selectors WHERE project_id = :project_id")
#: Record the stack after whose operation a group has to be refreshed: (transaction, stack id, resource id).
let_wait: Callable[[Tx, str, str], None] = execute(
    "UPDATE selectors SET waits_for = :stack WHERE resource_id = :resource"
)
#: Return the groups that wait for a stack, and end their wait.
release_waiting: Callable[[Tx, str], list[str]] = column(
    "UPDATE selectors SET waits_for = NULL WHERE waits_for = :stack RETURNING resource_id"
)


def lock_labels(tx: Tx, project_id: str) -> None:
    """
    Lock the labels, facts and selectors of a project until the transaction ends.

    If a group and a label are added at the same time, one transaction thereby sees the change of the other.
    """
    tx.advisory_lock(f"labels of {project_id}")


def selectors_of(tx: Tx, project_id: str) -> list[tuple[str, Selector]]:
    """Return the project's selectors: (resource id, selector)."""
    stored = tx.fetch_all(_OF_PROJECT, {"project_id": project_id})
    return [(id, Selector(labels=rows.load(labels), text=text)) for id, labels, text in stored]
