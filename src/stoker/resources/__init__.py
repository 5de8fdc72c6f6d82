"""What each resource type does: one file each, found in this folder or installed (``stoker.resources``)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.metadata import entry_points

from stoker.resources.base import ResourceType


def load() -> Mapping[str, ResourceType]:
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found = [module.TYPE for module in modules if hasattr(module, "TYPE")]  # the others are what types share
    found += [point.load() for point in entry_points(group="stoker.resources")]
    return {name: each for each in found for name in (each.name, *each.aliases)}
