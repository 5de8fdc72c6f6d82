"""
``CFN_SIGNAL``: the agent posts the result to a pre-signed URL of the CloudFormation API; no other credentials are
needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class CfnSignal:
    """The signal transport ``CFN_SIGNAL``."""

    signal_name: str = "CFN_SIGNAL"
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """Return the signed URL and the method ``POST``."""
        return {"deploy_signal_id": platform.signed_url(target, "signal", "POST"), "deploy_signal_verb": "POST"}


transport = CfnSignal()
