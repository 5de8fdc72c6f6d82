"""
The document is a message in a queue of the server's own.

Our agent reads it by a signed URL, which opens that queue to nothing else; upstream's has a user that it logs in with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Party, Signed, Site, login_keys


@dataclass(frozen=True, slots=True)
class ZaqarMessage:
    metadata_name: str = "ZAQAR_MESSAGE"
    logs_in: bool = True
    opens_to: str = "GET"
    expires: bool = True
    needs: str = QUEUES

    def sections(self, tx: Tx, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        signed = site.queues.signed(tx, party, self.opens_to) if party.own_agent else None
        opening = login_keys(site, party) if signed is None else facts(signed)
        return {"zaqar": {**opening, "queue_id": party.resource_id}}

    def open(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.open(tx, party, keep_newest=True)

    def publish(self, tx: Tx, site: Site, party: Party, document: Mapping[str, Any]) -> None:
        site.queues.replace(tx, party, document)

    def close(self, tx: Tx, site: Site, party: Party) -> None:
        site.queues.close(tx, party)


def facts(signed: Signed) -> dict[str, str]:
    """A signed URL, as our agent is told of it."""
    return {
        "messaging_url": signed.url,
        "project_id": signed.project_id,
        "url_paths": signed.paths,
        "url_methods": signed.methods,
        "url_expires": signed.expires,
        "url_signature": signed.signature,
    }


transport = ZaqarMessage()
