"""Tables on a terminal: names first, ids as their shortest unique beginnings, times as ages, and the least widths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count

#: Characters between two columns.
GAP = 3
#: Least width of a folded column, of one with names, and of the beginning of an id.
_LEAST, _LEAST_NAME, _SHORT = 8, 24, 8
_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_NAMES = ("name", "stack_name", "resource_name", "server", "field")
_STATES = ("status", "state", "outcome", "action", "total", "complete", "failed", "changed")
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def order(columns: Sequence[str]) -> list[str]:
    """Return the columns with a name before the id that they begin with."""
    name = next((column for column in columns if column in _NAMES), None)
    if name is None or columns[0] != "id":
        return list(columns)
    return [name, *(column for column in columns if column != name)]


def shorten(column: str, cells: Sequence[str], now: datetime) -> list[str]:
    """Return the cells of a column with short ids, or with ages in place of times."""
    if column == "id" or column.endswith("_id"):
        return _short_ids(cells)
    if column.endswith(("time", "_at", "last_seen", "since")):
        return [_age(cell, now) for cell in cells]
    return list(cells)


def natural_width(title: str, cells: Sequence[str]) -> int:
    """Return the width of the longest line of a column."""
    from rich.cells import cell_len  # imported here because most commands do not print to a terminal

    return max(cell_len(line) for text in (title, *cells) for line in text.split("\n"))


def least_width(column: str, title: str, natural: int) -> int:
    """Return the width to which a column may be folded: names less than other text, ids and states not at all."""
    least = _LEAST_NAME if column in _NAMES else _LEAST
    return natural if _is_whole(column) else min(natural, max(least, *map(len, title.split())))


def _is_whole(column: str) -> bool:
    """Whether the column is never folded."""
    return column == "id" or column.endswith(("_id", *_STATES))


def _short_ids(cells: Sequence[str]) -> list[str]:
    ids = {cell for cell in cells if _ID.fullmatch(cell)}
    length = next(length for length in count(_SHORT) if len({id[:length] for id in ids}) == len(ids))
    return [cell[:length] if _ID.fullmatch(cell) else cell for cell in cells]


def _age(cell: str, now: datetime) -> str:
    """Return a time as ``3m ago`` or ``in 2h``; other text unchanged."""
    try:
        moment = datetime.fromisoformat(cell.replace("Z", "+00:00"))
    except ValueError:
        return cell
    seconds = (now - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))).total_seconds()
    unit, size = next(((unit, size) for unit, size in _UNITS if abs(seconds) >= size), ("s", 1))
    number = f"{int(abs(seconds) // size)}{unit}"
    return f"{number} ago" if seconds >= 0 else f"in {number}"
