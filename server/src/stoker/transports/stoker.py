"""Stoker's own channel, over which its agent gets documents and reports results, and the absence of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class StokerPush:
    """The metadata transport ``STOKER_PUSH``."""

    metadata_name: str = "STOKER_PUSH"

    def sections(self, _tx: Tx, _platform: Platform, _target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """Return no sections, because the agent has its configuration from the enrollment."""
        return {}


@dataclass(frozen=True, slots=True)
class StokerSignal:
    """The signal transport ``STOKER_SIGNAL``."""

    signal_name: str = "STOKER_SIGNAL"
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, _platform: Platform, _target: TransportTarget) -> Mapping[str, Any]:
        """Return no inputs, because the agent has a connection already."""
        return {}


@dataclass(frozen=True, slots=True)
class NoSignal:
    """The signal transport ``NO_SIGNAL``."""

    signal_name: str = "NO_SIGNAL"
    awaits_signal: bool = False

    def signal_inputs(self, _tx: Tx, _platform: Platform, _target: TransportTarget) -> Mapping[str, Any]:
        """Return no inputs."""
        return {}


TRANSPORTS = (StokerPush(), StokerSignal(), NoSignal())
