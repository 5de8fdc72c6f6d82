"""The result is posted to a pre-signed URL of CloudFormation's API: nothing on the server but that URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Party, Site


@dataclass(frozen=True, slots=True)
class CfnSignal:
    signal_name: str = "CFN_SIGNAL"
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, site: Site, party: Party) -> Mapping[str, Any]:
        return {"deploy_signal_id": site.signed_url(party, "signal", "POST"), "deploy_signal_verb": "POST"}


transport = CfnSignal()
