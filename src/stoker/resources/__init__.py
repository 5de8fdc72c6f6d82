"""What each resource type does: one file each, found in this folder or installed (``stoker.resources``)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.metadata import entry_points

from stoker.resources.base import ResourceType

#: Modules of this folder that hold no type.
_SHARED = frozenset(("base", "properties", "deploying", "serving", "waiting", "nesting"))


def load() -> Mapping[str, ResourceType]:
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name not in _SHARED)
    found = [importlib.import_module(f"{__name__}.{name}").TYPE for name in names]
    found += [point.load() for point in entry_points(group="stoker.resources")]
    return {name: each for each in found for name in (each.name, *each.aliases)}
