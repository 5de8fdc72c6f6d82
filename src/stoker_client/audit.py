"""The audit log API, a Stoker extension: which actor requested what on which server, and the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stoker_client.pagination import read_pages
from stoker_client.shapes import Decision

if TYPE_CHECKING:
    from stoker_client.wire import Wire


class Audit:
    """Calls to the audit log API."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, *, limit: int | None = None, site: bool = False, **filters: str | None) -> list[Decision]:
        """
        Return audit entries of the project, or with ``site`` those of no project, newest first and at most ``limit``.

        ``filters``: ``server`` and ``stack`` (name or id, also of a deleted one), ``actor``, ``outcome``.
        """
        return cast(
            list[Decision], read_pages(self._wire, "/audit/site" if site else "/audit", "audit", filters, limit)
        )
