"""Our own agent reports over the channel it already has, with the server's own key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StokerSignal:
    signal_name: str = "STOKER_SIGNAL"
    awaits_signal: bool = True

    def signal_inputs(self) -> Mapping[str, Any]:
        return {}


transport = StokerSignal()
