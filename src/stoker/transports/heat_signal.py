"""The result comes by Heat's ``resources/{name}/signal`` call, from whoever may make it in the stack's project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HeatSignal:
    signal_name: str = "HEAT_SIGNAL"
    awaits_signal: bool = True

    def signal_inputs(self) -> Mapping[str, Any]:
        return {}


transport = HeatSignal()
