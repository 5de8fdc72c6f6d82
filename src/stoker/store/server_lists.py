"""Lists of servers: pages of a project's servers, and the servers that a selector selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.selectors import Selectable, Selector
from stoker.model.server import AgentAccess, Server
from stoker.store import rows, servers, statements
from stoker.store.repository import Repository
from stoker.store.schema import server_facts
from stoker.store.schema import servers as table
from stoker.store.tx import Tx

#: The place of a server in lists, which are sorted by age: its ``created_at`` in microseconds, and its id.
Position = tuple[int, str]

_BEGINNING: Position = (-1, "")
#: Servers that a selection reads at a time: at first, and at most. If labels are required, each part searches their
#: index again, so the parts grow.
_FIRST, _MOST = 1000, 32_000
_GROWTH = 4
#: Labels that fewer than one of so many servers has are searched in their index.
_RARE = 8

_SERVERS = Repository(Server, table)
_CREATED, _ID, _LABELS = (_SERVERS.columns.index(column) for column in (table.c.created_at, table.c.id, table.c.labels))


def _following(columns: Any, query: sa.Select[Any]) -> sa.Select[Any]:
    """Return the query of the first ``:limit`` rows after the position ``:created_at``, ``:id``."""
    after = sa.tuple_(columns.created_at, columns.id) > sa.tuple_(sa.bindparam("created_at"), sa.bindparam("id"))
    return query.where(after).order_by(columns.created_at, columns.id).limit(sa.bindparam("limit"))


def _with_facts(query: sa.Select[Any]) -> sa.Select[Any]:
    return query.add_columns(server_facts.c.facts).outerjoin(server_facts, server_facts.c.server_id == table.c.id)


_PAGE = _following(table.c, _SERVERS.by("project_id"))
#: Servers that wait for approval, or have left, are never selected: nothing would run there.
_SELECTABLE = (*statements.equal(table, "project_id"), table.c.agent_access == AgentAccess.ALLOWED.value)
_SELECTED = _following(table.c, _SERVERS.select(*_SELECTABLE))
#: PostgreSQL finds the servers with the labels by an index before it sorts them. It would otherwise expect to find the
#: first ones sooner by reading all servers in their order.
_LABELLED = (
    sa.select(table.c.created_at, table.c.id)
    .where(*_SELECTABLE, statements.HasLabels(table.c.labels))
    .cte("labelled")
    .prefix_with("MATERIALIZED")
)
_LABELLED_IDS = _following(_LABELLED.c, sa.select(_LABELLED.c.id))
#: The same among the next ``:window`` servers. If many servers have the labels, this sorts none of them.
_WINDOW = (
    _following(table.c, sa.select(table.c.created_at, table.c.id, table.c.labels).where(*_SELECTABLE))
    .limit(sa.bindparam("window"))
    .cte("next_servers")
    .prefix_with("MATERIALIZED")
)
_IDS_IN_WINDOW = (
    sa.select(_WINDOW.c.id)
    .where(statements.HasLabels(_WINDOW.c.labels))
    .order_by(_WINDOW.c.created_at, _WINDOW.c.id)
    .limit(sa.bindparam("limit"))
)
_SEVERAL = _SERVERS.select(statements.AnyOf(table.c.id)).order_by(table.c.created_at, table.c.id)
_SELECTED_WITH_FACTS, _SEVERAL_WITH_FACTS = _with_facts(_SELECTED), _with_facts(_SEVERAL)


def position(tx: Tx, project_id: str, marker: str | None) -> Position | None:
    """Return the position of the server with the id ``marker``; None if it is no server of the project."""
    server = servers.find(tx, marker) if marker else None
    if server is None or server.project_id != project_id:
        return None
    return rows.to_micros(server.created_at), server.id


def page(tx: Tx, project_id: str, limit: int, after: Position | None = None) -> list[tuple[Position, Server]]:
    """Return at most ``limit`` of the project's servers with their positions, oldest first: those after ``after``."""
    return [
        (_position_of(row), _SERVERS.decode(row, tx.secrets))
        for row in tx.fetch_all(_PAGE, _values(project_id, limit, after))
    ]


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
        if _is_selected(selector, required, row[_LABELS], *row[len(_SERVERS.columns) :]):
            yield _position_of(row), _SERVERS.decode(row, tx.secrets)


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
            ids, is_rare = _find_labelled(tx, {**values, "required": rows.dump(required)}, is_rare)
            part = tx.fetch_all(_SEVERAL_WITH_FACTS if selector.names_facts else _SEVERAL, {"ids": rows.dump(ids)})
        else:
            part = tx.fetch_all(_SELECTED_WITH_FACTS if selector.names_facts else _SELECTED, values)
        yield from part
        if len(part) < limit:
            return
        after = _position_of(part[-1])
        limit = min(limit * _GROWTH, _MOST)


def _find_labelled(tx: Tx, values: Mapping[str, Any], is_rare: bool) -> tuple[list[str], bool]:
    """
    Return the ids of the next servers with the labels, and whether the labels are rare.

    ``is_rare`` states that an earlier part has shown it.
    """
    limit = values["limit"]
    if not is_rare:
        ids = [row[0] for row in tx.fetch_all(_IDS_IN_WINDOW, {**values, "window": limit * _RARE})]
        if len(ids) == limit:
            return ids, False
    return [row[0] for row in tx.fetch_all(_LABELLED_IDS, values)], True


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
