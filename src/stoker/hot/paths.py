"""Places: inside a template (``resources.a.properties.b[0]``) and inside a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]


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


def _step(value: Any, step: Any) -> Any:
    if isinstance(value, Mapping):
        return value[step]
    if isinstance(value, Sequence):
        return value[int(step)]
    raise TypeError(step)
