"""``STOKER_PUSH``: Stoker's own agent holds a long poll open and receives its document as soon as it changes."""

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


transport = StokerPush()
