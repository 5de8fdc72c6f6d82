"""Nothing comes back: deployed means published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Party, Site


@dataclass(frozen=True, slots=True)
class NoSignal:
    signal_name: str = "NO_SIGNAL"
    awaits_signal: bool = False

    def signal_inputs(self, _tx: Tx, _site: Site, _party: Party) -> Mapping[str, Any]:
        return {}


transport = NoSignal()
