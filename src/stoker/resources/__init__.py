"""
The registry of resource types.

Each type is a module of this package with a value ``TYPE``, an entry of a module's ``TYPES``, or an object that an
installed package names as an entry point in the group ``stoker.resources``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.metadata import entry_points

from stoker.resources.base import ResourceType


def load() -> Mapping[str, ResourceType]:
    """Import all resource types; return them by name and by alias."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    types = [module.TYPE for module in modules if hasattr(module, "TYPE")]  # modules without types are shared helpers
    types += [resource_type for module in modules for resource_type in getattr(module, "TYPES", ())]
    types += [point.load() for point in entry_points(group="stoker.resources")]
    return {name: resource_type for resource_type in types for name in (resource_type.name, *resource_type.aliases)}
