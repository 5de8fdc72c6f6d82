"""The result is posted to a queue of the deployment's own, by a user that may do nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Party, Site
from stoker.transports.heat_signal import login_inputs


@dataclass(frozen=True, slots=True)
class ZaqarSignal:
    signal_name: str = "ZAQAR_SIGNAL"
    logs_in: bool = True
    awaits_signal: bool = True
    needs: str = QUEUES

    def signal_inputs(self, tx: Tx, site: Site, party: Party) -> Mapping[str, Any]:
        site.queues.expect(tx, party)
        return {**login_inputs(site, party), "deploy_queue_id": party.resource_id}

    def open(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.open(tx, party, keep_newest=False)

    def close(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.close(tx, party)


transport = ZaqarSignal()
