"""The agent polls Heat's ``resources/{name}/metadata`` call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PollServerHeat:
    metadata_name: str = "POLL_SERVER_HEAT"

    def sections(self) -> Mapping[str, Any]:
        return {}


transport = PollServerHeat()
