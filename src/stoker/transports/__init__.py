"""How a document reaches a server and how a result comes back: one file each, found in this folder or installed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from stoker.transports.base import Carrying, Signalling

#: For templates and requests that name none.
DEFAULT_SIGNAL = "STOKER_SIGNAL"
DEFAULT_METADATA = "STOKER_PUSH"


@dataclass(frozen=True, slots=True)
class Transports:
    signalling: Mapping[str, Signalling]
    carrying: Mapping[str, Carrying]

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
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")
    found = [importlib.import_module(f"{__name__}.{name}").transport for name in names]
    found += [point.load() for point in entry_points(group="stoker.transports")]
    return Transports(
        signalling={each.signal_name: each for each in found if isinstance(each, Signalling)},
        carrying={each.metadata_name: each for each in found if isinstance(each, Carrying)},
    )
