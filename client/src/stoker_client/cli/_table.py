"""
Tables on a terminal: names first, ids as their shortest unique beginnings, times as ages, and within the width.

States are never cut. If a table is too wide, its widest columns are folded, those with names and ids last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count

#: Characters between two columns.
GAP = 3
#: Least width of a folded column, and of the beginning of an id.
_LEAST, _SHORT = 8, 8
_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_NAMES = ("name", "stack_name", "resource_name", "server")
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


def widths(columns: Sequence[str], rows: Sequence[Sequence[str]], titles: Sequence[str], available: int) -> list[int]:
    """Return the width of each column, so that all of them fit into ``available`` characters if that is possible."""
    from rich.cells import cell_len

    words = [max(map(cell_len, title.split()), default=1) for title in titles]
    natural = [
        max((cell_len(line) for cell in cells for line in cell.split("\n")), default=1)
        for cells in (zip(*rows, strict=True) if rows else [()] * len(columns))
    ]
    natural = list(map(max, natural, words))
    room = available - GAP * (len(columns) - 1)
    for names in (_NAMES, ()):
        whole = [column in names or _is_whole(column) for column in columns]
        rest = room - sum(width for width, stays in zip(natural, whole, strict=True) if stays)
        most = _most([width for width, stays in zip(natural, whole, strict=True) if not stays], rest)
        if most >= _LEAST:
            break
    return [
        width if stays else max(word, min(width, max(most, _LEAST)))
        for width, stays, word in zip(natural, whole, words, strict=True)
    ]


def without_empty(
    columns: Sequence[str], rows: Sequence[Sequence[str]], titles: Sequence[str], available: int
) -> list[int]:
    """Return the positions of the columns to show: in a table that is too wide, those that have any text."""
    every = list(range(len(columns)))
    if sum(widths(columns, rows, titles, 1_000_000)) + GAP * (len(columns) - 1) <= available:
        return every
    return [position for position in every if any(row[position] for row in rows)] or every


def _most(folded: Sequence[int], room: int) -> int:
    """Return the width to which the widest columns are folded, so that all of them have ``room``."""
    for number, width in enumerate(sorted(folded)):
        share = room // (len(folded) - number)
        if width > share:
            return share
        room -= width
    return max((*folded, _LEAST))


def _is_whole(column: str) -> bool:
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
