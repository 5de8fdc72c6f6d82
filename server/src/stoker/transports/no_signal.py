"""``NO_SIGNAL``: the agent returns no result; a deployment is complete when it is in the document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class NoSignal:
    """The signal transport ``NO_SIGNAL``."""

    signal_name: str = "NO_SIGNAL"
    awaits_signal: bool = False

    def signal_inputs(self, _tx: Tx, _platform: Platform, _target: TransportTarget) -> Mapping[str, Any]:
        """Return no inputs."""
        return {}


transport = NoSignal()
