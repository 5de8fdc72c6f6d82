"""Queries for lists of stacks, with Heat's filters and sort orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.model.stack import Stack
from stoker.store import rows
from stoker.store.sql import compose
from stoker.store.stacks import STACKS, find
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Filters and sorting of Heat's stack list. Several values of one key are alternatives."""

    equal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Part of the name, whatever the case.
    contains: str = ""
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
    "stack_name": "name",
    "stack_status": "status",
    "creation_time": "created_at",
    "updated_time": "updated_at",
}
_FILTERABLE = frozenset(
    {"id", "name", "status", "action", "username", "reason", "user_project_id", "project_id", "parent_id"}
)
#: Conditions for the fields of ``Filter`` with tags. A stack's tags are stored as a JSON list of texts, and the
#: parameters are lists of such texts.
_TAGS = {
    "tags": "NOT EXISTS (SELECT 1 FROM @each(tags) AS tag WHERE @position(stacks.tags, tag.value) = 0)",
    "tags_any": "EXISTS (SELECT 1 FROM @each(tags_any) AS tag WHERE @position(stacks.tags, tag.value) > 0)",
    "not_tags": "EXISTS (SELECT 1 FROM @each(not_tags) AS tag WHERE @position(stacks.tags, tag.value) = 0)",
    **{
        name: f"NOT EXISTS (SELECT 1 FROM @each({name}) AS tag WHERE @position(stacks.tags, tag.value) > 0)"
        for name in ("not_tags_any", "hidden_tags")
    },
}


def list_all(tx: Tx, project_id: str, wanted: Filter) -> list[Stack]:
    """Return the project's stacks that match the filter, in its order."""
    condition, values = _matching(project_id, wanted)
    keys = _sort_columns(wanted)
    descending = wanted.descending if wanted.descending is not None else not wanted.sort_keys
    mark = find(tx, wanted.marker) if wanted.marker else None
    if mark is not None and mark.project_id == project_id:
        encoded = STACKS.encode(mark, tx.secrets)
        values |= {f"mark_{key}": encoded[key] or 0 for key in keys}
        condition += f" AND {_beyond_mark(keys, descending)}"
    order = ", ".join(f"{_sortable(key)} {'DESC' if descending else 'ASC'}" for key in keys)
    query = compose(STACKS.select(f"{condition} ORDER BY {order} LIMIT :limit").text)
    limit = rows.UNLIMITED if wanted.limit is None else wanted.limit
    return STACKS.all(tx, query, {**values, "limit": limit})


def _sort_columns(wanted: Filter) -> list[str]:
    """Return the columns that determine the order; the last one is unique."""
    columns = dict.fromkeys(_SORTABLE[key] for key in wanted.sort_keys if key in _SORTABLE)
    return [*(columns or ["created_at"]), "id"]


def _beyond_mark(keys: Sequence[str], descending: bool) -> str:
    """Return the condition for the stacks after the marker, whose values are the parameters ``mark_…``."""
    marks = ", ".join(f":mark_{key}" for key in keys)
    return f"({', '.join(map(_sortable, keys))}) {'<' if descending else '>'} ({marks})"


def _sortable(key: str) -> str:
    """Return the column with 0 in place of NULL, so that it sorts first on both databases and can be compared."""
    return f"COALESCE({key}, 0)" if key == "updated_at" else key


def count(tx: Tx, project_id: str, wanted: Filter) -> int:
    """Return the number of the project's stacks that match the filter."""
    condition, values = _matching(project_id, wanted)
    return int(tx.scalar(compose(f"SELECT count(*) FROM stacks WHERE {condition}"), values))


def _matching(project_id: str, wanted: Filter) -> tuple[str, dict[str, Any]]:
    """Return the condition for the stacks that match, with the values of its parameters."""
    assert _FILTERABLE.issuperset(wanted.equal), "a name becomes a part of the statement"
    tags = {name: [rows.dump(tag) for tag in getattr(wanted, name)] for name in _TAGS}
    conditions = [
        "project_id = :project",
        *(() if wanted.show_deleted else ("deleted_at IS NULL",)),
        *(() if wanted.show_nested else ("parent_id IS NULL",)),
        *(("@position(lower(name), :contains) > 0",) if wanted.contains else ()),
        *(condition for name, condition in _TAGS.items() if tags[name]),
        *(f"{name} @in({name})" for name in wanted.equal),
    ]
    lists = {**tags, **wanted.equal}
    values = {"project": project_id, "contains": wanted.contains.lower()}
    return " AND ".join(conditions), {**values, **{name: rows.dump(lists[name]) for name in lists}}
