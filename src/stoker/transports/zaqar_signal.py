"""
``ZAQAR_SIGNAL``: the agent posts the result to the deployment's own queue.

Stoker's agent posts by a signed URL, which permits nothing else. The upstream agent logs in as a user that may do more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Platform, TransportTarget
from stoker.transports.heat_signal import login_inputs
from stoker.transports.zaqar_message import facts


@dataclass(frozen=True, slots=True)
class ZaqarSignal:
    """The signal transport ``ZAQAR_SIGNAL``."""

    signal_name: str = "ZAQAR_SIGNAL"
    logs_in: bool = True
    signed_method: str = "POST"
    awaits_signal: bool = True
    needs: str = QUEUES

    def signal_inputs(self, tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """Return the queue with a signed URL or a login, and expect a result in the queue."""
        platform.queues.await_result(tx, target)
        signed = platform.queues.signed(tx, target, self.signed_method) if target.own_agent else None
        if signed is not None:
            opening = {f"deploy_{name}": value for name, value in facts(signed).items()}
            return {"deploy_queue_id": target.resource_id, **opening}
        return {**login_inputs(platform, target), "deploy_queue_id": target.resource_id}

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the deployment's queue."""
        platform.queues.open(tx, target, keep_newest=False)

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the queue."""
        platform.queues.close(tx, target)


transport = ZaqarSignal()
