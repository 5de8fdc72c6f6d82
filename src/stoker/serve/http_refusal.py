"""Refused requests: the reasons, and the error responses that a connection sends by itself."""

from __future__ import annotations

from collections.abc import Iterable

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from stoker.http import errors

_RETRY_SECONDS = "5"


class Refusal(Exception):
    """The reason for which a connection refuses a request, as an HTTP status, an error type and a message."""

    def __init__(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.headers = status, kind, message, headers

    def to_bytes(self, url: bytes, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the complete response, in the error format of the API that ``url`` belongs to."""
        path = url.partition(b"?")[0].decode("ascii", "replace")
        response: Response = errors.reply(path, self.status, self.kind, self.message, self.headers).to_starlette()
        lines = [*default_headers, *response.raw_headers, (b"connection", b"close")]
        head = b"".join(b"%s: %s\r\n" % line for line in lines)
        return b"%s%s\r\n%s" % (STATUS_LINE[self.status], head, response.body)


def unavailable(message: str) -> Refusal:
    """Return the refusal of a request that the client may repeat soon."""
    return Refusal(503, "ServiceUnavailable", message, {"Retry-After": _RETRY_SECONDS})


def late(part: str) -> Refusal:
    """Return the refusal of a request whose ``part`` did not come in time."""
    return Refusal(408, "RequestTimeout", f"The request's {part} did not come in time")


def malformed(error: httptools.HttpParserError, request_line: list[str]) -> Refusal:
    """Return the refusal of a request that the parser rejects. ``request_line`` is split at its spaces."""
    if isinstance(error, httptools.HttpParserInvalidMethodError) and len(request_line) == 3:
        return Refusal(501, "HTTPNotImplemented", f"There is no method {request_line[0][:100]!r}")
    return Refusal(400, "HTTPBadRequest", f"This is not a request in HTTP/1.1: {error}")
