"""Reads request bodies, within the limits of the route and of the memory for all bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request

from stoker.model.errors import RequestLimitExceeded, TooManyRequests

if TYPE_CHECKING:
    from stoker.http.app import App
    from stoker.http.request_context import Route

#: Limits of bodies in memory, in bytes: per known client, per address without a login, and in total.
_KNOWN_BYTES = 48 * 1024 * 1024
_UNKNOWN_BYTES = 8 * 1024 * 1024
_BYTES = 256 * 1024 * 1024
#: Bytes of a body after which ``check_large`` is called.
_LARGE = 64 * 1024


class Client(NamedTuple):
    """The client whose share of threads and memory a request uses."""

    key: str
    #: The client is authenticated: a project or an agent. Otherwise ``key`` is an address.
    is_known: bool


class Lease:
    """The bytes that one request uses of the budget, until the block ends."""

    __slots__ = ("_budget", "_key", "_share", "size")

    def __init__(self, budget: BodyBudget, key: str, share: int) -> None:
        self._budget, self._key, self._share = budget, key, share
        self.size = 0

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        if self.size:
            self._budget.add(self._key, -self.size)

    def extend(self, size: int) -> None:
        """Reserve ``size`` more bytes. Raises TooManyRequests, but never for the only body of a client."""
        self._budget.add(self._key, size)
        self.size += size
        usage = self._budget.usage(self._key)
        if usage > self.size and (usage > self._share or self._budget.total > _BYTES):
            raise TooManyRequests("Too many large requests at a time: try again in a moment", retry_after=2)


class BodyBudget:
    """Counts the bytes of bodies until their requests are answered. Use it on the event loop only."""

    def __init__(self) -> None:
        self.total = 0
        self._held: dict[str, int] = {}

    def lease(self, client: Client) -> Lease:
        """Return a lease of zero bytes for one request of ``client``."""
        return Lease(self, client.key, _KNOWN_BYTES if client.is_known else _UNKNOWN_BYTES)

    def usage(self, key: str) -> int:
        """Return the bytes that the requests of ``key`` use now."""
        return self._held.get(key, 0)

    def add(self, key: str, size: int) -> None:
        """Add ``size`` bytes, which may be negative, to the usage of ``key``."""
        self.total += size
        usage = self.usage(key) + size
        if usage:
            self._held[key] = usage
        else:
            self._held.pop(key, None)


async def read(request: Request, route: Route, lease: Lease, app: App) -> bytes:
    """
    Return the body of the request.

    Raises RequestLimitExceeded as soon as the body exceeds the limit of the route, TooManyRequests if the client
    exceeds its share of memory, and whatever the route's ``check_large`` raises.
    """
    limit = route.body_limit
    check_large = route.check_large
    chunks: list[bytes] = []
    async for chunk in request.stream():
        if not chunk:
            continue
        lease.extend(len(chunk))
        if lease.size > limit:
            raise RequestLimitExceeded(f"Request limit exceeded: the body is longer than {limit} bytes")
        chunks.append(chunk)
        if check_large is not None and lease.size > _LARGE:
            await check_large(request, app)
            check_large = None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
