"""
The registry of transports.

A metadata transport delivers a server's document; a signal transport returns a deployment's result. Each transport is a
module of this package, or an object that an installed package names as an entry point in the group
``stoker.transports``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points

from stoker.model.errors import Invalid
from stoker.transports.base import MetadataTransport, PublishingTransport, SignalTransport
from stoker.transports.selection import AUTO

_NOT_TRANSPORTS = ("base", "selection")


@dataclass(frozen=True, slots=True)
class Transports:
    """The transports of this process by name, without ``AUTO``, and the defaults for templates that name none."""

    signal_transports: Mapping[str, SignalTransport]
    metadata_transports: Mapping[str, MetadataTransport]
    default_signal: str = AUTO
    default_metadata: str = AUTO
    #: True if documents may go through an object store or a queue only to agents that verify signatures.
    requires_signatures: bool = False

    @property
    def signal_names(self) -> list[str]:
        """Values that a deployment's ``signal_transport`` may have, ``AUTO`` first."""
        return [AUTO, *self.offered_signals()]

    @property
    def metadata_names(self) -> list[str]:
        """Values that a server's ``software_config_transport`` may have, ``AUTO`` first."""
        return [AUTO, *self.offered_metadata()]

    def with_defaults(self, signal: str, metadata: str, *, requires_signatures: bool = False) -> Transports:
        """Return a copy with these defaults. Raises Invalid if no enabled transport has the name."""
        for name, offered, setting in (
            (signal, self.signal_names, "default_deployment_signal_transport"),
            (metadata, self.metadata_names, "default_software_config_transport"),
        ):
            if name not in offered:
                raise Invalid(f"{setting} must be one of {', '.join(offered)}, not {name!r}")
        return replace(self, default_signal=signal, default_metadata=metadata, requires_signatures=requires_signatures)

    def is_rejected(self, metadata_name: str, *, own_agent: bool) -> bool:
        """
        Return whether this site refuses servers with this metadata transport.

        True if the site requires signatures, the transport publishes documents to an external place, and the server's
        agent (``own_agent`` False) cannot verify signatures.
        """
        carried = isinstance(self.metadata_transports.get(metadata_name), PublishingTransport)
        return self.requires_signatures and carried and not own_agent

    def offered_signals(self) -> list[str]:
        """Return the names of the signal transports that new deployments may use."""
        return sorted(name for name, transport in self.signal_transports.items() if not _is_disabled(transport))

    def offered_metadata(self) -> list[str]:
        """Return the names of the metadata transports that new servers may use."""
        return sorted(name for name, transport in self.metadata_transports.items() if not _is_disabled(transport))


_disabled: set[str] = set()


def disable(*needs: str) -> None:
    """
    Disable all transports whose ``needs`` attribute is among ``needs`` (``base.OBJECTS``, ``base.QUEUES``).

    New servers and deployments cannot select a disabled transport; existing ones keep it. The app factory calls this
    function once at start-up.
    """
    _disabled.clear()
    _disabled.update(needs)


def _is_disabled(transport: object) -> bool:
    return getattr(transport, "needs", None) in _disabled


@cache
def load() -> Transports:
    """Import all transports. The result is cached: the set of transports does not change while Stoker runs."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_TRANSPORTS)
    transports = [importlib.import_module(f"{__name__}.{name}").transport for name in names]
    transports += [point.load() for point in entry_points(group="stoker.transports")]
    return Transports(
        signal_transports={
            transport.signal_name: transport for transport in transports if isinstance(transport, SignalTransport)
        },
        metadata_transports={
            transport.metadata_name: transport for transport in transports if isinstance(transport, MetadataTransport)
        },
    )
