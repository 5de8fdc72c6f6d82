"""The format of the object store's errors, Swift's."""

from __future__ import annotations

from stoker.http.api import Failure
from stoker.http.request import Response
from stoker.model.errors import RequestLimitExceeded


def render(failure: Failure) -> Response:
    """Return the message as a line of plain text, or without a message an HTML page that explains the status."""
    status = 413 if isinstance(failure.error, RequestLimitExceeded) else failure.status
    if failure.message is None:
        page = f"<html><h1>{failure.title}</h1><p>{failure.explanation}</p></html>"
        return Response(status, page.encode(), {"Content-Type": "text/html; charset=UTF-8", **failure.headers})
    text = f"{failure.message}\n".encode(errors="replace")
    return Response(status, text, {"Content-Type": "text/plain; charset=UTF-8", **failure.headers})
