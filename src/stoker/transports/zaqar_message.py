"""The document is a message in a queue of the server's own, which its user reads and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Party, Site


@dataclass(frozen=True, slots=True)
class ZaqarMessage:
    metadata_name: str = "ZAQAR_MESSAGE"
    logs_in: bool = True
    expires: bool = True
    needs: str = QUEUES

    def sections(self, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        login = site.login(party)
        return {
            "zaqar": {
                "user_id": login.user_id,
                "password": login.password,
                "auth_url": site.auth_url,
                "project_id": login.project_id,
                "queue_id": party.resource_id,
                "region_name": site.region,
            }
        }

    def open(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.open(tx, party, keep_newest=True)

    def publish(self, tx: Tx, site: Site, party: Party, document: Mapping[str, Any]) -> None:
        site.queues.replace(tx, party, document)

    def close(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.close(tx, party)


transport = ZaqarMessage()
