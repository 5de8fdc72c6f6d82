"""Our own agent holds a poll open and is answered as soon as its document changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Party, Site


@dataclass(frozen=True, slots=True)
class StokerPush:
    metadata_name: str = "STOKER_PUSH"

    def sections(self, _tx: Tx, _site: Site, _party: Party) -> Mapping[str, Mapping[str, Any]]:
        return {}


transport = StokerPush()
