"""Paths within a template (``resources.a.properties.b[0]``) and within a value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]

#: Index as text; no list needs more digits.
_INDEX = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def dotted_path(path: Sequence[str | int]) -> str:
    """A path in the usual notation."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def heat_path(path: Sequence[str | int]) -> str:
    """A path in Heat's notation, where names that are numbers are in brackets, too."""
    parts = (f"[{part}]" if isinstance(part, int) or part.isdigit() else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def select(value: Any, path: Sequence[Any], missing: Any = None) -> Any:
    """The part of ``value`` at ``path``; ``missing`` if the path does not exist."""
    try:
        for step in path:
            value = _step(value, step)
    except (KeyError, IndexError, TypeError, ValueError):
        return missing
    return value


def index_of(segment: Any) -> int:
    """Parse an index: an integer or its text. Raises ValueError."""
    if type(segment) is int:
        return segment
    if not isinstance(segment, str) or not _INDEX.fullmatch(segment):
        raise ValueError(segment)
    return int(segment)


def _step(value: Any, step: Any) -> Any:
    if isinstance(value, Mapping):
        return value[step]
    if isinstance(value, Sequence):
        return value[index_of(step)]
    raise TypeError(step)
