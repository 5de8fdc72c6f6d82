"""The agent polls Heat's ``resources/{name}/metadata`` call, with a user of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Party, Site, login_keys


@dataclass(frozen=True, slots=True)
class PollServerHeat:
    metadata_name: str = "POLL_SERVER_HEAT"
    logs_in: bool = True

    def sections(self, _tx: Tx, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        place = {"stack_id": f"{party.stack_name}/{party.stack_id}", "resource_name": party.resource_name}
        return {"heat": {**login_keys(site, party), **place}}


transport = PollServerHeat()
