"""Files that agents download through the relay, in memory: the agent's program, the install script and hooks."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from stoker.http.request import Response

#: Bytes of all files, and of the largest one that is cached.
_BYTES, _LARGEST = 64 * 1024 * 1024, 32 * 1024 * 1024
_LOCKS = 16

#: Sends the request with this If-None-Match; empty: without one. Raises CenterAway.
Fetch = Callable[[str], Awaitable[Response]]


class Downloads:
    """
    The cache. The central Stoker authorizes each use, by a conditional request.

    Files that were not used for the longest time leave.
    """

    def __init__(self) -> None:
        self._files: OrderedDict[str, Response] = OrderedDict()
        self._size = 0
        #: The first download of a file is made once, however many agents ask for it.
        self._locks = [asyncio.Lock() for _ in range(_LOCKS)]

    async def get(self, path: str, fetch: Fetch) -> Response:
        """Return the answer to the request for a file. Raises CenterAway."""
        if path not in self._files:
            async with self._locks[hash(path) % _LOCKS]:
                if path not in self._files:
                    return self._store(path, await fetch(""))
        cached = self._files[path]
        self._files.move_to_end(path)
        response = await fetch(cached.headers["etag"])
        return cached if response.status == 304 else self._store(path, response)

    def _store(self, path: str, response: Response) -> Response:
        """Cache a complete answer, whose ETag is the content's SHA-256. Return the answer."""
        if response.status != 200:
            return response
        if (before := self._files.pop(path, None)) is not None:
            self._size -= len(before.content)
        content = response.content or b""
        digest = response.headers.get("etag", "").strip('"')
        if len(content) <= _LARGEST and hashlib.sha256(content).hexdigest() == digest:
            self._files[path] = response
            self._size += len(content)
            while self._size > _BYTES:
                self._size -= len(self._files.popitem(last=False)[1].content)
        return response
