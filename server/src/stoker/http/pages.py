"""
Lists of unlimited length: read, encoded and sent page by page, so that a long list is never in memory as a whole.

A short list (up to 1 MiB) is an ordinary response. The first 1 MiB is read in the handler's transaction, and each
following page in one of its own: the response may or may not
include rows that are created while it is sent, as with pages that a client requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from stoker.http.request import LARGE, RequestContext, Response, Streamed
from stoker.model.secrets import redact_credentials
from stoker.store.tx import Tx

_encoder = msgspec.json.Encoder()
#: Maximum rows of a page.
_MOST = 1000

#: Reads one page. Arguments: the transaction, the position to start after (None: the beginning) and the maximum number
#: of rows. Returns the position and the JSON value of each row. Fewer rows than the maximum end the list.
Read = Callable[[Tx, Any, int], list[tuple[Any, Any]]]


#: Takes the same arguments. Returns the number of rows that fit into the bytes of a page, at least 1.
Fit = Callable[[Tx, Any, int], int]


class _Pages:
    def __init__(
        self, request: RequestContext, read: Read, start: Any, limit: int | None, first: int, fit: Fit | None
    ) -> None:
        self._request = request
        self._read = read
        self._fit = fit
        self._position = start
        self._left = limit
        self._rows = first
        self.over = limit == 0

    def next(self) -> bytes:
        """Return the next entries, separated by commas, in a transaction of its own."""
        with self._request.read() as tx:
            return self.read(tx)

    def read(self, tx: Tx) -> bytes:
        """Return the next entries, separated by commas: about ``LARGE`` bytes; empty at the end."""
        parts: list[bytes] = []
        size = 0
        while not self.over and size < LARGE:
            most = self._rows if self._left is None else min(self._rows, self._left)
            if self._fit is not None and most > 1:  # rows after the last page may be much larger than its rows
                most = self._fit(tx, self._position, most)
            rows = self._read(tx, self._position, most)
            entries = [self._encode(value) for _, value in rows]
            parts += entries
            if self._left is not None:
                self._left -= len(rows)
            self.over = len(rows) < most or self._left == 0
            if rows:
                self._position = rows[-1][0]
                page = sum(map(len, entries)) + 1
                size += page
                self._rows = max(1, min(_MOST, LARGE * len(rows) // page))
        return b",".join(parts)

    def _encode(self, value: Any) -> bytes:
        """Redact each entry here, because a streamed page does not pass through ``without_credentials``."""
        raw = _encoder.encode(value)
        return redact_credentials(raw) if self._request.caller.only_reads else raw


def reply(
    request: RequestContext,
    tx: Tx,
    name: str,
    read: Read,
    *,
    first: int,
    start: Any = None,
    limit: int | None = None,
    fit: Fit | None = None,
) -> Response:
    """
    Return ``{name: [...]}`` with the rows that ``read`` returns after ``start``, at most ``limit``.

    ``first`` is the number of rows of the first page; pass a small number if one row may be large. ``fit`` is for lists
    whose rows may be large.
    """
    pages = _Pages(request, read, start, limit, first, fit)
    start_of_list = b'{"%s":[%s' % (name.encode(), pages.read(tx))
    if pages.over:
        return Response(200, start_of_list + b"]}")
    return Streamed(status=200, chunks=_chunks(request, pages, start_of_list))


async def _chunks(request: RequestContext, pages: _Pages, start_of_list: bytes) -> AsyncIterator[bytes]:
    yield start_of_list
    while not pages.over:
        page = await request.in_thread(pages.next)
        if page:
            yield b"," + page
    yield b"]}"
