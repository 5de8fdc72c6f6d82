"""
``ZAQAR_SIGNAL``: the agent posts the result to a queue.

Stoker's agent posts to the deployment's queue by a signed URL, which permits nothing else, and names the run in the
result. The upstream agent names no run, so each run has a queue of its own. It logs in as a user that may do more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Platform, Signed, TransportTarget
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
        """Return the queue with a signed URL or a login."""
        queue, signed = self._find_queue(tx, platform, target)
        if signed is not None:
            opening = {f"deploy_{name}": value for name, value in facts(signed).items()}
            return {"deploy_queue_id": queue.remote_name, **opening}
        return {**login_inputs(platform, target), "deploy_queue_id": queue.remote_name}

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the queue, and expect the result in it."""
        queue, _ = self._find_queue(tx, platform, target)
        platform.queues.open(tx, queue, keep_newest=False)
        platform.queues.await_result(tx, queue)

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the queue."""
        platform.queues.close(tx, target)

    def _find_queue(self, tx: Tx, platform: Platform, target: TransportTarget) -> tuple[TransportTarget, Signed | None]:
        """Return whose queue receives the result, the deployment's or that of its run, and the signed URL."""
        deployment = replace(target, run="")
        signed = platform.queues.signed(tx, deployment, self.signed_method) if target.own_agent else None
        return (target if signed is None else deployment), signed


transport = ZaqarSignal()
