"""
The registry of transports.

A metadata transport delivers a server's document; a signal transport returns a deployment's result. Each module of this
package lists the transports of one channel. An installed package names a transport as an entry point in the group
``stoker.transports``.

``AUTO`` is resolved in the order of the specifications: Stoker's own channel if the server runs Stoker's agent;
otherwise the messaging service, then the object store, if the site has one; otherwise the CloudFormation API, which
every site has.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import entry_points

from stoker.model.errors import Invalid
from stoker.transports.base import MetadataTransport, Platform, PublishingTransport, SignalTransport

#: The name with which a server or a deployment leaves the choice to Stoker.
AUTO = "AUTO"


@dataclass(frozen=True)
class Transports:
    """The transports of a site by name, without ``AUTO``, and the defaults for templates that name none."""

    signal_transports: Mapping[str, SignalTransport]
    metadata_transports: Mapping[str, MetadataTransport]
    default_signal: str = AUTO
    default_metadata: str = AUTO
    #: True if documents may go through an object store or a queue only to agents that verify signatures.
    requires_signatures: bool = False
    #: Services that the site lacks: values of a transport's ``needs`` (``base.OBJECTS``, ``base.QUEUES``). New servers
    #: and deployments cannot select a transport that needs one; existing ones keep it.
    missing_services: frozenset[str] = frozenset()

    @cached_property
    def signal_names(self) -> list[str]:
        """Values that a deployment's ``signal_transport`` may have, ``AUTO`` first."""
        return [AUTO, *self._offered(self.signal_transports)]

    @cached_property
    def metadata_names(self) -> list[str]:
        """Values that a server's ``software_config_transport`` may have, ``AUTO`` first."""
        return [AUTO, *self._offered(self.metadata_transports)]

    def for_site(
        self,
        default_signal: str,
        default_metadata: str,
        *,
        requires_signatures: bool = False,
        missing_services: Iterable[str] = (),
    ) -> Transports:
        """Return a copy for a site. Raises Invalid if the site does not offer a transport with a default's name."""
        site = replace(
            self,
            default_signal=default_signal,
            default_metadata=default_metadata,
            requires_signatures=requires_signatures,
            missing_services=frozenset(missing_services),
        )
        for name, offered, setting in (
            (default_signal, site.signal_names, "default_deployment_signal_transport"),
            (default_metadata, site.metadata_names, "default_software_config_transport"),
        ):
            if name not in offered:
                raise Invalid(f"{setting} must be one of {', '.join(offered)}, not {name!r}")
        return site

    def is_rejected(self, metadata_name: str, *, own_agent: bool) -> bool:
        """
        Return whether this site refuses servers with this metadata transport.

        True if the site requires signatures, the transport publishes documents to an external place, and the server's
        agent (``own_agent`` False) cannot verify signatures.
        """
        is_published = isinstance(self.metadata_transports.get(metadata_name), PublishingTransport)
        return self.requires_signatures and is_published and not own_agent

    def _offered(self, transports: Mapping[str, object]) -> list[str]:
        """Return the names of those whose service the site has, if they need one."""
        missing = self.missing_services
        return sorted(
            name for name, transport in transports.items() if getattr(transport, "needs", None) not in missing
        )


@cache
def load() -> Transports:
    """Import all transports that are installed. A site restricts them with ``Transports.for_site``."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")
    transports = [item for name in names for item in importlib.import_module(f"{__name__}.{name}").TRANSPORTS]
    transports += [point.load() for point in entry_points(group="stoker.transports")]
    return Transports(
        signal_transports={item.signal_name: item for item in transports if isinstance(item, SignalTransport)},
        metadata_transports={item.metadata_name: item for item in transports if isinstance(item, MetadataTransport)},
    )


def select_metadata(platform: Platform, *, own_agent: bool, carried: bool = True) -> str:
    """
    Return the name of a metadata transport.

    ``own_agent``: the server runs Stoker's agent. ``carried`` False: documents must not go through an object store or a
    queue.
    """
    if own_agent:
        return "STOKER_PUSH"
    if not carried:
        return "POLL_SERVER_CFN"
    return _first(platform, "ZAQAR_MESSAGE", "POLL_TEMP_URL", "POLL_SERVER_CFN")


def select_signal(platform: Platform, *, own_agent: bool) -> str:
    """Return the name of a signal transport. ``own_agent``: the server runs Stoker's agent."""
    if own_agent:
        return "STOKER_SIGNAL"
    return _first(platform, "ZAQAR_SIGNAL", "TEMP_URL_SIGNAL", "CFN_SIGNAL")


def _first(platform: Platform, queue: str, object: str, otherwise: str) -> str:
    choices: Sequence[tuple[bool, str]] = ((platform.has_queues, queue), (platform.has_objects, object))
    return next((name for there, name in choices if there), otherwise)
