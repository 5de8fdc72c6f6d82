"""GET /healthz and the list of API versions."""

from __future__ import annotations

from stoker.http.access import Public
from stoker.http.request_context import RequestContext, Response, Route
from stoker.model.errors import Unavailable
from stoker.version import VERSION


async def health(request: RequestContext) -> Response:
    """
    Return 200 while every check of the health report passes. Runs on the event loop and does not read the database.

    Raises Unavailable, which names the failed checks.
    """
    problems = request.app.health.problems()
    if problems:
        raise Unavailable("; ".join(f"{name}: {reason}" for name, reason in problems.items()))
    return Response(200, {"status": "ok", "version": VERSION})


def versions(request: RequestContext) -> Response:
    """Return the list of API versions, as Heat does."""
    links = [{"rel": "self", "href": f"{request.app.settings.public_url}/v1/"}]
    return Response(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": links}]})


ROUTES = [
    Route("GET", "/healthz", Public(), health),
    Route("GET", "/", Public(), versions),
    Route("GET", "/versions", Public(), versions),
    Route("GET", "/v1", Public(), versions),
]
