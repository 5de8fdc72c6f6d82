"""
Objects that agents reach by pre-signed URLs, so that the server needs no credentials.

A document is an object. Each result has an object of its own, because upstream agents do not name the run whose result
they report.
"""

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
        return {"request": {"metadata_url": platform.objects.url(target, _document_place(target), "GET")}}

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the server's object."""
        platform.objects.open(tx, target, _document_place(target), target.resource_id)

    def publish(self, tx: Tx, platform: Platform, target: TransportTarget, document: Mapping[str, Any]) -> None:
        """Write the document to the object."""
        platform.objects.put(tx, target, _document_place(target), json.dumps(document).encode())

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the object."""
        platform.objects.close(tx, target, _document_place(target))


def _document_place(target: TransportTarget) -> ObjectRef:
    return ObjectRef(target.name, target.resource_id)


@dataclass(frozen=True, slots=True)
class TempUrlSignal:
    """The signal transport ``TEMP_URL_SIGNAL``."""

    signal_name: str = "TEMP_URL_SIGNAL"
    awaits_signal: bool = True
    needs: str = OBJECTS

    def signal_inputs(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """Return the signed URL and the method ``PUT``."""
        url = platform.objects.url(target, signal_place(target), "PUT")
        return {"deploy_signal_id": url, "deploy_signal_verb": "PUT"}

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the run's object, and expect the result in it."""
        platform.objects.open(tx, target, signal_place(target), target.stack_id)
        platform.objects.await_result(tx, target, signal_place(target))

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the object."""
        platform.objects.close(tx, target, signal_place(target))


def signal_place(target: TransportTarget, *, versions: bool = False) -> ObjectRef:
    """Return the object for a target's results: one container per stack, one object per run or resource."""
    return ObjectRef(target.stack_id, target.remote_name, versions)


TRANSPORTS = (PollTempUrl(), TempUrlSignal())
