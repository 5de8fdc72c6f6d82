"""``POLL_SERVER_HEAT``: the agent polls Heat's ``resources/{name}/metadata`` call with its own user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Platform, TransportTarget, login_keys


@dataclass(frozen=True, slots=True)
class PollServerHeat:
    """The metadata transport ``POLL_SERVER_HEAT``."""

    metadata_name: str = "POLL_SERVER_HEAT"
    logs_in: bool = True

    def sections(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """Return the section ``heat``: the login and the resource."""
        place = {"stack_id": f"{target.stack_name}/{target.stack_id}", "resource_name": target.resource_name}
        return {"heat": {**login_keys(platform, target), **place}}


transport = PollServerHeat()
