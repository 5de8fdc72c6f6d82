"""
``TEMP_URL_SIGNAL``: the agent puts the result into an object by a pre-signed URL; the server needs no credentials.

Each run has an object of its own, because upstream agents do not name the run whose result they report.
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


transport = TempUrlSignal()
