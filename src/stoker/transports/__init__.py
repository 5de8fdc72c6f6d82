"""How a document reaches a server and how a result comes back: one file each, found in this folder or installed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points

from stoker.model.errors import Invalid
from stoker.transports.base import Carrying, Signalling
from stoker.transports.choosing import AUTO

_NOT_TRANSPORTS = ("base", "choosing")


@dataclass(frozen=True, slots=True)
class Transports:
    """By their names, AUTO not among them; and what templates mean that name none."""

    signalling: Mapping[str, Signalling]
    carrying: Mapping[str, Carrying]
    default_signal: str = AUTO
    default_metadata: str = AUTO

    @property
    def signal_names(self) -> list[str]:
        return [AUTO, *self.offered_signals()]

    @property
    def metadata_names(self) -> list[str]:
        return [AUTO, *self.offered_metadata()]

    def with_defaults(self, signal: str, metadata: str) -> Transports:
        """Raises Invalid for names that no transport has."""
        for name, known, setting in (
            (signal, self.signal_names, "default_deployment_signal_transport"),
            (metadata, self.metadata_names, "default_software_config_transport"),
        ):
            if name not in known:
                raise Invalid(f"{setting} must be one of {', '.join(known)}, not {name!r}")
        return replace(self, default_signal=signal, default_metadata=metadata)

    def offered_signals(self) -> list[str]:
        """Names of those that new deployments may have."""
        return sorted(name for name, each in self.signalling.items() if not _is_withheld(each))

    def offered_metadata(self) -> list[str]:
        """Names of those that servers may have from now on."""
        return sorted(name for name, each in self.carrying.items() if not _is_withheld(each))


_withheld: set[str] = set()


def withhold(*needs: str) -> None:
    """
    This site is without what these transports need (``base.OBJECTS``, ``base.QUEUES``): nothing new may use them. What
    had them before keeps them. Said once, when Stoker starts.
    """
    _withheld.clear()
    _withheld.update(needs)


def _is_withheld(transport: object) -> bool:
    return getattr(transport, "needs", None) in _withheld


@cache
def load() -> Transports:
    """The same for every caller: which transports there are is settled when Stoker starts."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_TRANSPORTS)
    found = [importlib.import_module(f"{__name__}.{name}").transport for name in names]
    found += [point.load() for point in entry_points(group="stoker.transports")]
    return Transports(
        signalling={each.signal_name: each for each in found if isinstance(each, Signalling)},
        carrying={each.metadata_name: each for each in found if isinstance(each, Carrying)},
    )
