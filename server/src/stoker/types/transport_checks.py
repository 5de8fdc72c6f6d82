"""Checks of the transports that templates name, against those that this site offers."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.resources.base import Properties, ResourceType, specialize
from stoker.transports import Transports
from stoker.types.server_base import UPSTREAM_AGENT, describe_unsigned

_SIGNAL, _METADATA = "signal_transport", "software_config_transport"


def with_transports(types: Mapping[str, ResourceType], transports: Transports) -> Mapping[str, ResourceType]:
    """
    Return types whose ``validate`` refuses templates that name a transport which this site does not offer.

    On a site that requires signed documents, the types also refuse transports whose documents the upstream agent
    cannot verify. If the template does not name the agent, the creation of the server makes this check.
    """

    def specialized(kind: ResourceType) -> ResourceType:
        for property in (_SIGNAL, _METADATA):
            # A property with fixed values, such as that of a wait condition handle, checks itself.
            if kind.properties and property in kind.properties and not kind.properties[property].allowed:
                return specialize(kind, _ChecksTransport, property=property, transports=transports)
        return kind

    return {name: specialized(kind) for name, kind in types.items()}


class _ChecksTransport(ResourceType):
    #: The property that names a transport.
    property: str
    transports: Transports

    def validate(self, properties: Properties) -> None:
        super().validate(properties)
        name, transports = properties[self.property], self.transports
        offered = transports.signal_names if self.property == _SIGNAL else transports.metadata_names
        if name not in (UNKNOWN, None, *offered):
            allowed = ", ".join(offered)
            raise StackValidationFailed(f"{self.property}: {clip(repr(name))} is not an allowed value [{allowed}]")
        if self.property == _METADATA and properties["agent"] == UPSTREAM_AGENT:
            name = name or transports.default_metadata
            if isinstance(name, str) and transports.is_rejected(name, own_agent=False):
                raise StackValidationFailed(describe_unsigned(name))
