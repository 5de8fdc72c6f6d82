"""``STOKER_SIGNAL``: Stoker's own agent reports results over its existing connection, with the server's key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class StokerSignal:
    """The signal transport ``STOKER_SIGNAL``."""

    signal_name: str = "STOKER_SIGNAL"
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, _platform: Platform, _target: TransportTarget) -> Mapping[str, Any]:
        """Return no inputs, because the agent has a connection already."""
        return {}


transport = StokerSignal()
