"""
Where a site has no object store, or no messaging service.

Nothing new may need one; what did so before it was turned off goes on without, so that it can be changed and deleted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Party, Place, Signed


class NoObjects:
    def open(self, tx: Tx, party: Party, place: Place, owner: str) -> None:
        pass

    def put(self, tx: Tx, party: Party, place: Place, data: bytes) -> None:
        pass

    def close(self, tx: Tx, party: Party, place: Place) -> None:
        pass

    def expect(self, tx: Tx, party: Party, place: Place, until: datetime | None = None) -> None:
        pass

    def url(self, party: Party, place: Place, verb: str) -> str:
        return ""


class NoQueues:
    def open(self, tx: Tx, party: Party, *, keep_newest: bool) -> None:
        pass

    def replace(self, tx: Tx, party: Party, body: Any) -> None:
        pass

    def expect(self, tx: Tx, party: Party, until: datetime | None = None) -> None:
        pass

    def sign(self, tx: Tx, party: Party, method: str) -> bool:
        return True

    def signed(self, tx: Tx, party: Party, method: str) -> Signed | None:
        return None

    def close(self, tx: Tx, party: Party) -> None:
        pass
