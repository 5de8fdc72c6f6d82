"""The audit log over HTTP: who wanted what on which server, and what was decided. Stoker's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stoker_client.paging import paged
from stoker_client.shapes import Decision

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Audit:
    """Calls on the audit log."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, *, server: str | None = None, limit: int | None = None) -> list[Decision]:
        """Decisions of the project, newest first."""
        return cast(list[Decision], paged(self._wire, "/audit", "audit", {"server": server}, limit))
