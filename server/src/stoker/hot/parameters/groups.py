"""Parameter groups: the layout of parameters in a form. Only checked and stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from stoker.hot.flaw import flaw
from stoker.hot.paths import Path
from stoker.hot.shapes import list_at, map_at, scalar_text

_KEYS = ("label", "description", "parameters")


def parse_groups(raw: Any, parameters: Collection[str]) -> tuple[Mapping[str, Any], ...]:
    """The groups of a template; each parameter belongs to at most one. Raises a flaw."""
    path: Path = ("parameter_groups",)
    seen: set[str] = set()
    groups = [] if raw is None else list_at(raw, path)
    return tuple(_group(group, (*path, index), parameters, seen) for index, group in enumerate(groups))


def _group(raw: Any, path: Path, parameters: Collection[str], seen: set[str]) -> Mapping[str, Any]:
    data = map_at(raw, path)
    for key in data:
        if key not in _KEYS:
            raise flaw((*path, key), f"Invalid key '{key}' for a parameter group")
    if "parameters" not in data:
        raise flaw(path, 'a parameter group needs a list of "parameters"')
    for key in ("label", "description"):
        scalar_text(data.get(key), (*path, key))
    for index, name in enumerate(list_at(data["parameters"], (*path, "parameters"))):
        place = (*path, "parameters", index)
        if not isinstance(name, str) or name not in parameters:
            raise flaw(place, f"The grouped parameter {name} does not reference a valid parameter.")
        if name in seen:
            raise flaw(place, f"The {name} parameter must be assigned to one parameter group only.")
        seen.add(name)
    return data
