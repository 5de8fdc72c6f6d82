"""
The registry of resource types.

Each type is a class of a module of this package, with a ``name`` of its own. An installed package names a type, or a
package of such modules, as an entry point in the group ``stoker.resources``; its types replace those of the same name.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from types import ModuleType

from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.resources import agent_access
from stoker.resources.base import Properties, ResourceEnv, ResourceType, specialize
from stoker.stacks.engine import Engine, Limits
from stoker.types.nested_stacks import TemplateType
from stoker.types.server_base import UPSTREAM_AGENT, describe_unsigned


def create_engine(types: Mapping[str, ResourceType], env: ResourceEnv, limits: Limits | None = None) -> Engine:
    """Return an engine with these types, which check the transports of this site."""
    return Engine(_with_transports(types, env), env, TemplateType(), limits or Limits())


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


_SIGNAL, _METADATA = "signal_transport", "software_config_transport"


def _with_transports(types: Mapping[str, ResourceType], env: ResourceEnv) -> Mapping[str, ResourceType]:
    """
    Return types whose ``validate`` refuses templates that name a transport which this site does not offer, or which
    needs users that this site cannot create.

    On a site that requires signed documents, the types also refuse transports whose documents the upstream agent
    cannot verify. If the template does not name the agent, the creation of the server makes this check.
    """

    def specialized(kind: ResourceType) -> ResourceType:
        for property in (_SIGNAL, _METADATA):
            if kind.properties and property in kind.properties:
                offered = env.transports.signal_names if property == _SIGNAL else env.transports.metadata_names
                return specialize(kind, _ChecksTransport, property=property, offered=offered, env=env)
        return kind

    return {name: specialized(kind) for name, kind in types.items()}


class _ChecksTransport(ResourceType):
    #: The property that names a transport.
    property: str
    #: Names of the transports that the site offers for it.
    offered: Sequence[str]
    env: ResourceEnv

    def validate(self, properties: Properties) -> None:
        super().validate(properties)
        if self.env.agents_wait:
            agent_access.validate(self.env, self, properties)
        assert self.properties is not None
        if self.properties[self.property].allowed:
            return  # a property with fixed values, such as that of a wait condition handle, checks itself
        name, transports = properties[self.property], self.env.transports
        if name not in (UNKNOWN, None, *self.offered):
            allowed = ", ".join(self.offered)
            raise StackValidationFailed(f"{self.property}: {clip(repr(name))} is not an allowed value [{allowed}]")
        if self.property == _METADATA and properties["agent"] == UPSTREAM_AGENT:
            name = name or transports.default_metadata
            if isinstance(name, str) and transports.is_rejected(name, own_agent=False):
                raise StackValidationFailed(describe_unsigned(name))
