"""``POLL_TEMP_URL``: the agent polls an object by a pre-signed URL; the server needs no credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS, ObjectRef, Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class PollTempUrl:
    """The metadata transport ``POLL_TEMP_URL``."""

    metadata_name: str = "POLL_TEMP_URL"
    expires: bool = False
    needs: str = OBJECTS

    def sections(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """Return the section ``request``: the signed URL of the object."""
        return {"request": {"metadata_url": platform.objects.url(target, _place(target), "GET")}}

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the server's object."""
        platform.objects.open(tx, target, _place(target), target.resource_id)

    def publish(self, tx: Tx, platform: Platform, target: TransportTarget, document: Mapping[str, Any]) -> None:
        """Write the document to the object."""
        platform.objects.put(tx, target, _place(target), json.dumps(document).encode())

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the object."""
        platform.objects.close(tx, target, _place(target))


def _place(target: TransportTarget) -> ObjectRef:
    return ObjectRef(target.name, target.resource_id)


transport = PollTempUrl()
