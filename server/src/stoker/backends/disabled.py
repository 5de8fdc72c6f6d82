"""
Implementations for a site without an object store or a messaging service.

New resources cannot use a disabled service. Existing resources of this service can still be changed and deleted.
"""

from __future__ import annotations

from typing import Any


def _ignore(*_: Any, **__: Any) -> None:
    pass


class DisabledObjects:
    """An object store without effect; see ``transports.base.Objects``."""

    open = put = close = await_result = staticmethod(_ignore)

    def url(self, *_: Any) -> str:
        return ""


class DisabledQueues:
    """A messaging service without effect; see ``transports.base.Queues``."""

    open = replace = await_result = close = staticmethod(_ignore)

    def sign(self, *_: Any) -> bool:
        return True

    def signed(self, *_: Any) -> None:
        return None
