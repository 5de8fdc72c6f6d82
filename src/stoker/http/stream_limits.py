"""Limits of open requests that wait for events, per token and per project."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable

from stoker.http.request_context import RequestContext
from stoker.model.errors import TooManyRequests

#: Seconds after which a refused client may try again.
_RETRY_SECONDS = 10


class StreamLimits:
    """Counts the open requests of this process. Use it on the event loop only."""

    def __init__(self, per_token: int, per_project: int) -> None:
        self._limits = {"token": per_token, "project": per_project}
        self._open: Counter[tuple[str, str]] = Counter()

    def enter(self, request: RequestContext) -> Callable[[], None]:
        """
        Count an open request. Return a function that the caller calls once, at the end of the request.

        Raises TooManyRequests.
        """
        token = request.raw.headers.get("x-auth-token", "")
        holders = (("token", hashlib.sha256(token.encode()).hexdigest()), ("project", request.project))
        for holder in holders:
            limit = self._limits[holder[0]]
            if self._open[holder] >= limit:
                raise TooManyRequests(
                    f"This {holder[0]} has {limit} event streams and held requests open already: end some first "
                    f"(setting max_streams_per_{holder[0]}).",
                    retry_after=_RETRY_SECONDS,
                )
        self._open.update(holders)
        return lambda: self._leave(holders)

    def _leave(self, holders: tuple[tuple[str, str], ...]) -> None:
        self._open.subtract(holders)
        for holder in holders:
            if not self._open[holder]:
                del self._open[holder]
