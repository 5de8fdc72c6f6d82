"""The document lies in an object that the agent polls by a pre-signed URL: no credentials on the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS, Party, Place, Site


@dataclass(frozen=True, slots=True)
class PollTempUrl:
    metadata_name: str = "POLL_TEMP_URL"
    expires: bool = False
    needs: str = OBJECTS

    def sections(self, _tx: Tx, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        return {"request": {"metadata_url": site.objects.url(party, _place(party), "GET")}}

    def open(self, tx: Tx, site: Site, party: Party) -> None:
        site.objects.open(tx, party, _place(party), party.resource_id)

    def publish(self, tx: Tx, site: Site, party: Party, document: Mapping[str, Any]) -> None:
        site.objects.put(tx, party, _place(party), json.dumps(document).encode())

    def close(self, tx: Tx, site: Site, party: Party) -> None:
        site.objects.close(tx, party, _place(party))


def _place(party: Party) -> Place:
    return Place(party.name, party.resource_id)


transport = PollTempUrl()
