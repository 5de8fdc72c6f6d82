"""
The registry of resource types.

Each type is a class of a module of this package, with a ``name`` of its own. An installed package names a type, or a
package of such modules, as an entry point in the group ``stoker.resources``; its types replace those of the same name.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from types import ModuleType

from stoker.resources.base import ResourceType


def load() -> Mapping[str, ResourceType]:
    """Import all resource types; return them by name and by alias."""
    types = [*types_of(sys.modules[__name__])]
    for point in entry_points(group="stoker.resources"):
        named = point.load()
        types += types_of(named) if isinstance(named, ModuleType) else [named()]
    return {name: resource_type for resource_type in types for name in (resource_type.name, *resource_type.aliases)}


def types_of(package: ModuleType) -> Iterator[ResourceType]:
    """Yield the types of a package's modules. A class without a name of its own is a base of types."""
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for kind in vars(module).values():
            is_own = isinstance(kind, type) and kind.__module__ == module.__name__
            if is_own and issubclass(kind, ResourceType) and vars(kind).get("name"):
                yield kind()
