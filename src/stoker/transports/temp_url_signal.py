"""The result is put into an object by a pre-signed URL: nothing on the server but that URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS, Party, Place, Site


@dataclass(frozen=True, slots=True)
class TempUrlSignal:
    signal_name: str = "TEMP_URL_SIGNAL"
    awaits_signal: bool = True
    needs: str = OBJECTS

    def signal_inputs(self, tx: Tx, site: Site, party: Party) -> Mapping[str, Any]:
        site.objects.expect(tx, party, signal_place(party))
        url = site.objects.url(party, signal_place(party), "PUT")
        return {"deploy_signal_id": url, "deploy_signal_verb": "PUT"}

    def open(self, tx: Tx, site: Site, party: Party) -> None:
        site.objects.open(tx, party, signal_place(party), party.stack_id)

    def close(self, tx: Tx, site: Site, party: Party) -> None:
        site.objects.close(tx, party, signal_place(party))


def signal_place(party: Party, *, versions: bool = False) -> Place:
    """A container a stack; the object's name tells the resource that it signals."""
    return Place(party.stack_id, party.resource_id, versions)


transport = TempUrlSignal()
