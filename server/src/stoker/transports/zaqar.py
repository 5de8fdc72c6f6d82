"""
Queues: the document is a message in the server's own queue, and the result a message in the deployment's.

Stoker's agent uses both by signed URLs, which permit nothing else, and names the run in the result. The upstream agent
logs in as a user that may do more, and names no run, so each run has a queue of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.messaging.signed_urls import SignedUrl
from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Platform, TransportTarget
from stoker.transports.heat import login_inputs, login_keys


@dataclass(frozen=True, slots=True)
class ZaqarMessage:
    """The metadata transport ``ZAQAR_MESSAGE``."""

    metadata_name: str = "ZAQAR_MESSAGE"
    logs_in: bool = True
    signed_method: str = "GET"
    expires: bool = True
    needs: str = QUEUES

    def sections(self, tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """Return the section ``zaqar``: the queue, and a signed URL or a login."""
        signed = platform.queues.signed(tx, target, self.signed_method) if target.own_agent else None
        opening = login_keys(platform, platform.login(target)) if signed is None else facts(platform, signed)
        return {"zaqar": {**opening, "queue_id": target.resource_id}}

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the server's queue, which keeps its newest message."""
        platform.queues.open(tx, target, keep_newest=True)

    def publish(self, tx: Tx, platform: Platform, target: TransportTarget, document: Mapping[str, Any]) -> None:
        """Replace the message in the queue by the document."""
        platform.queues.replace(tx, target, document)

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the queue."""
        platform.queues.close(tx, target)


def facts(platform: Platform, signed: SignedUrl) -> dict[str, str]:
    """Return a signed URL in the form that Stoker's agent reads."""
    return {
        "messaging_url": platform.queues.url,
        "project_id": signed.project,
        "url_paths": ",".join(signed.paths),
        "url_methods": ",".join(signed.methods),
        "url_expires": signed.expires,
        "url_signature": signed.signature,
    }


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
            opening = {f"deploy_{name}": value for name, value in facts(platform, signed).items()}
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

    def _find_queue(
        self, tx: Tx, platform: Platform, target: TransportTarget
    ) -> tuple[TransportTarget, SignedUrl | None]:
        """Return whose queue receives the result, the deployment's or that of its run, and the signed URL."""
        deployment = replace(target, run="")
        signed = platform.queues.signed(tx, deployment, self.signed_method) if target.own_agent else None
        return (target if signed is None else deployment), signed


TRANSPORTS = (ZaqarMessage(), ZaqarSignal())
