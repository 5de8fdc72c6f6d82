"""
Implementations for a site without an object store or a messaging service.

New resources cannot use a disabled service. Existing resources of this service can still be changed and deleted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import ObjectRef, Signed, TransportTarget


class DisabledObjects:
    """An object store without effect; see ``transports.base.Objects``."""

    def open(self, tx: Tx, target: TransportTarget, ref: ObjectRef, owner: str) -> None:
        pass

    def put(self, tx: Tx, target: TransportTarget, ref: ObjectRef, data: bytes) -> None:
        pass

    def close(self, tx: Tx, target: TransportTarget, ref: ObjectRef) -> None:
        pass

    def await_result(self, tx: Tx, target: TransportTarget, ref: ObjectRef, until: datetime | None = None) -> None:
        pass

    def url(self, target: TransportTarget, ref: ObjectRef, verb: str) -> str:
        return ""


class DisabledQueues:
    """A messaging service without effect; see ``transports.base.Queues``."""

    def open(self, tx: Tx, target: TransportTarget, *, keep_newest: bool) -> None:
        pass

    def replace(self, tx: Tx, target: TransportTarget, body: Any) -> None:
        pass

    def await_result(self, tx: Tx, target: TransportTarget, until: datetime | None = None) -> None:
        pass

    def sign(self, tx: Tx, target: TransportTarget, method: str) -> bool:
        return True

    def signed(self, tx: Tx, target: TransportTarget, method: str) -> Signed | None:
        return None

    def close(self, tx: Tx, target: TransportTarget) -> None:
        pass
