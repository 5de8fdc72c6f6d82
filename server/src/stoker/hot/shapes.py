"""Type checks that all sections share. They raise flaws."""

from __future__ import annotations

from typing import Any

from stoker.hot.flaw import flaw
from stoker.hot.paths import Path
from stoker.hot.words import kind_of


def map_at(value: Any, path: Path) -> dict[str, Any]:
    """Return ``value`` if it is a map."""
    if not isinstance(value, dict):
        raise flaw(path, f"a map is needed, not {kind_of(value)}")
    return value


def optional_map(data: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    """The map under ``key``; an empty map if the value is missing or null."""
    value = data.get(key)
    return {} if value is None else map_at(value, (*path, key))


def list_at(value: Any, path: Path) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise flaw(path, f"a list is needed, not {kind_of(value)}")
    return value


def scalar_text(value: Any, path: Path, default: str = "") -> str:
    """Descriptive text: numbers and booleans are converted, and null becomes the default."""
    if value is None:
        return default
    if isinstance(value, (dict, list)):
        raise flaw(path, f"text is needed, not {kind_of(value)}")
    return str(value)
