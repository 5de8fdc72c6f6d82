"""Sends large responses in pieces: the next piece follows when the client has read enough of the previous ones."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Bytes above which a response is sent in pieces, and bytes of one piece.
LARGE = 1024 * 1024
_PIECE = 64 * 1024


class PiecedResponse(Response):
    """A response whose body is in memory once, and not also in the send buffer of a client that does not read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for start in range(0, len(body), _PIECE):
            piece = body[start : start + _PIECE]
            more = start + _PIECE < len(body)
            await send({"type": "http.response.body", "body": piece, "more_body": more})
