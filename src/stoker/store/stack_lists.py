"""Queries for lists of stacks, with Heat's filters and sort orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from stoker.model.stack import Stack
from stoker.store import rows
from stoker.store.schema import stacks
from stoker.store.stacks import STACKS, find
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Filters and sorting of Heat's stack list. Several values of one key are alternatives."""

    equal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    show_deleted: bool = False
    show_nested: bool = False
    #: Tags: all of ``tags`` and one of ``tags_any``; not all of ``not_tags`` and none of ``not_tags_any``.
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    not_tags_any: Sequence[str] = ()
    #: Stacks with one of these tags are excluded in any case.
    hidden_tags: Sequence[str] = ()
    limit: int | None = None
    marker: str | None = None
    sort_keys: Sequence[str] = ()
    descending: bool | None = None


_SORTABLE = {
    "stack_name": stacks.c.name,
    "stack_status": stacks.c.status,
    "creation_time": stacks.c.created_at,
    "updated_time": stacks.c.updated_at,
}
_FILTERABLE = {
    name: stacks.c[name]
    for name in (
        "id",
        "name",
        "status",
        "action",
        "username",
        "reason",
        "user_project_id",
        "project_id",
        "parent_id",
        "timeout_mins",
        "disable_rollback",
    )
}


def list_all(tx: Tx, project_id: str, wanted: Filter) -> list[Stack]:
    """Return the project's stacks that match the filter, in its order."""
    query = STACKS.select(*_conditions(project_id, wanted))
    keys = [_SORTABLE[key] for key in wanted.sort_keys if key in _SORTABLE] or [stacks.c.created_at]
    descending = wanted.descending if wanted.descending is not None else not wanted.sort_keys
    mark = find(tx, wanted.marker) if wanted.marker else None
    if mark is not None and mark.project_id == project_id:
        query = query.where(_beyond(keys, stacks.c.id, STACKS.encode(mark, tx.secrets), descending=descending))
    order = [_sortable(key).desc() if descending else _sortable(key).asc() for key in (*keys, stacks.c.id)]
    return [STACKS.decode(row, tx.secrets) for row in tx.run(query.order_by(*order).limit(wanted.limit))]


def count(tx: Tx, project_id: str, wanted: Filter) -> int:
    """Return the number of the project's stacks that match the filter."""
    query = sa.select(sa.func.count()).select_from(stacks).where(*_conditions(project_id, wanted))
    count: int = tx.run(query).scalar_one()
    return count


def _conditions(project_id: str, wanted: Filter) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = [stacks.c.project_id == project_id]
    if not wanted.show_deleted:
        conditions.append(stacks.c.deleted_at.is_(None))
    if not wanted.show_nested:
        conditions.append(stacks.c.parent_id.is_(None))
    if wanted.tags:
        conditions.append(sa.and_(*map(_tagged, wanted.tags)))
    if wanted.tags_any:
        conditions.append(sa.or_(*map(_tagged, wanted.tags_any)))
    if wanted.not_tags:
        conditions.append(sa.not_(sa.and_(*map(_tagged, wanted.not_tags))))
    if wanted.not_tags_any:
        conditions.append(sa.not_(sa.or_(*map(_tagged, wanted.not_tags_any))))
    if wanted.hidden_tags:
        conditions.append(sa.not_(sa.or_(*map(_tagged, wanted.hidden_tags))))
    for name, values in wanted.equal.items():
        conditions.append(_FILTERABLE[name].in_(list(values)))
    return conditions


def _tagged(tag: str) -> sa.ColumnElement[bool]:
    """Return the condition that a stack has the tag. Tags are stored as a JSON list of texts."""
    return stacks.c.tags.contains(rows.dump(tag), autoescape=True)


def _beyond(
    keys: Sequence[sa.Column[Any]], last: sa.Column[Any], mark: Mapping[str, Any], *, descending: bool
) -> sa.ColumnElement[bool]:
    """Return the condition for rows after the marker in the order of ``keys``, then id."""
    columns = [(_sortable(column), 0 if mark[column.name] is None else mark[column.name]) for column in (*keys, last)]
    alternatives = []
    for i, (column, value) in enumerate(columns):
        ahead = column < value if descending else column > value
        alternatives.append(sa.and_(*(equal == same for equal, same in columns[:i]), ahead))
    return sa.or_(*alternatives)


def _sortable(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Return the column with 0 in place of NULL, so that it sorts first on both databases and can be compared."""
    return sa.func.coalesce(column, 0) if column.nullable else column
