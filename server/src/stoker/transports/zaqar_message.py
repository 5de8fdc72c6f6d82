"""
``ZAQAR_MESSAGE``: the document is a message in the server's own queue.

Stoker's agent reads the queue by a signed URL, which permits nothing else. The upstream agent logs in as a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import QUEUES, Platform, Signed, TransportTarget, login_keys


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
        opening = login_keys(platform, target) if signed is None else facts(signed)
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


def facts(signed: Signed) -> dict[str, str]:
    """Return a signed URL in the form that Stoker's agent reads."""
    return {
        "messaging_url": signed.url,
        "project_id": signed.project_id,
        "url_paths": signed.paths,
        "url_methods": signed.methods,
        "url_expires": signed.expires,
        "url_signature": signed.signature,
    }


transport = ZaqarMessage()
