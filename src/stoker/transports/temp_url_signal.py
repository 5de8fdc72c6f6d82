"""
``TEMP_URL_SIGNAL``: the agent puts the result into an object by a pre-signed URL; the server needs no credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS, ObjectRef, Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class TempUrlSignal:
    """The signal transport ``TEMP_URL_SIGNAL``."""

    signal_name: str = "TEMP_URL_SIGNAL"
    awaits_signal: bool = True
    needs: str = OBJECTS

    def signal_inputs(self, tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """Return the signed URL and the method ``PUT``, and expect a result in the object."""
        platform.objects.await_result(tx, target, signal_place(target))
        url = platform.objects.url(target, signal_place(target), "PUT")
        return {"deploy_signal_id": url, "deploy_signal_verb": "PUT"}

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the deployment's object."""
        platform.objects.open(tx, target, signal_place(target), target.stack_id)

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the object."""
        platform.objects.close(tx, target, signal_place(target))


def signal_place(target: TransportTarget, *, versions: bool = False) -> ObjectRef:
    """Return the object for a target's results: one container per stack, one object per resource."""
    return ObjectRef(target.stack_id, target.resource_id, versions)


transport = TempUrlSignal()
