"""
The result is posted to a queue of the deployment's own.

Our agent does so by a signed URL, which is good for nothing else; upstream's logs in as a user that is neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Party, Site
from stoker.transports.heat_signal import login_inputs
from stoker.transports.zaqar_message import facts


@dataclass(frozen=True, slots=True)
class ZaqarSignal:
    signal_name: str = "ZAQAR_SIGNAL"
    logs_in: bool = True
    opens_to: str = "POST"
    awaits_signal: bool = True
    needs: str = QUEUES

    def signal_inputs(self, tx: Tx, site: Site, party: Party) -> Mapping[str, Any]:
        site.queues.expect(tx, party)
        signed = site.queues.signed(tx, party, self.opens_to) if party.own_agent else None
        if signed is not None:
            opening = {f"deploy_{name}": value for name, value in facts(signed).items()}
            return {"deploy_queue_id": party.resource_id, **opening}
        return {**login_inputs(site, party), "deploy_queue_id": party.resource_id}

    def open(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.open(tx, party, keep_newest=False)

    def close(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.close(tx, party)


transport = ZaqarSignal()
