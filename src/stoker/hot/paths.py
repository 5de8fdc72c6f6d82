"""Places: inside a template (``resources.a.properties.b[0]``) and inside a value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]

#: As text; no list has an index of more digits.
_INDEX = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def dotted(path: Sequence[str | int]) -> str:
    """A place as people write it."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def select(value: Any, path: Sequence[Any], missing: Any = None) -> Any:
    """What lies at ``path`` inside ``value``; ``missing`` when any step leads nowhere."""
    try:
        for step in path:
            value = _step(value, step)
    except (KeyError, IndexError, TypeError, ValueError):
        return missing
    return value


def index_of(said: Any) -> int:
    """An index as people write it: a whole number, or text of one. Raises ValueError."""
    if type(said) is int:
        return said
    if not isinstance(said, str) or not _INDEX.fullmatch(said):
        raise ValueError(said)
    return int(said)


def _step(value: Any, step: Any) -> Any:
    if isinstance(value, Mapping):
        return value[step]
    if isinstance(value, Sequence):
        return value[index_of(step)]
    raise TypeError(step)
