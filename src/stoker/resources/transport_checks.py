"""Checks of the transports that templates name, against those that this site offers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.resources.base import Properties, ResourceType
from stoker.resources.server_base import UPSTREAM_AGENT, describe_unsigned
from stoker.transports import Transports

_SIGNAL, _METADATA = "signal_transport", "software_config_transport"


def with_transports(types: Mapping[str, ResourceType], transports: Transports) -> Mapping[str, ResourceType]:
    """
    Return types whose ``validate`` refuses templates that name a transport which this site does not offer.

    On a site that requires signed documents, the types also refuse transports whose documents the upstream agent
    cannot verify. If the template does not name the agent, the creation of the server makes this check.
    """
    offered = {_SIGNAL: transports.signal_names, _METADATA: transports.metadata_names}

    def checking(kind: ResourceType, property: str) -> ResourceType:
        def validate(properties: Properties) -> None:
            kind.validate(properties)
            name = properties[property]
            if name not in (UNKNOWN, None, *offered[property]):
                allowed = ", ".join(offered[property])
                raise StackValidationFailed(f"{property}: {clip(repr(name))} is not an allowed value [{allowed}]")
            if property == _METADATA and properties["agent"] == UPSTREAM_AGENT:
                name = name or transports.default_metadata
                if isinstance(name, str) and transports.is_rejected(name, own_agent=False):
                    raise StackValidationFailed(describe_unsigned(name))

        return replace(kind, validate=validate)

    def checked(kind: ResourceType) -> ResourceType:
        for property in offered:
            # A property with fixed values, such as that of a wait condition handle, checks itself.
            if kind.properties and property in kind.properties and not kind.properties[property].allowed:
                return checking(kind, property)
        return kind

    return {name: checked(kind) for name, kind in types.items()}
