"""GET /healthz and the list of API versions."""

from __future__ import annotations

from typing import Literal

from stoker.http.access import Public
from stoker.http.contracts import operation
from stoker.http.fields import Answer, Link
from stoker.http.request_context import RequestContext, Response, Route
from stoker.model.errors import Unavailable
from stoker.version import VERSION


class Version(Answer):
    id: str
    status: str
    links: list[Link]


@operation(200, {"status": Literal["ok"], "version": str})
async def health(request: RequestContext) -> Response:
    """
    Return whether every check of the health report passes. The status 503 names the failed checks.

    Raises Unavailable.
    """
    # Runs on the event loop and does not read the database.
    problems = request.app.health.problems()
    if problems:
        raise Unavailable("; ".join(f"{name}: {reason}" for name, reason in problems.items()))
    return Response(200, {"status": "ok", "version": VERSION})


@operation(300, {"versions": list[Version]})
def versions(request: RequestContext) -> Response:
    """List the versions of the API, as Heat does."""
    links = [{"rel": "self", "href": f"{request.app.settings.public_url}/v1/"}]
    return Response(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": links}]})


ROUTES = [
    Route("GET", "/healthz", Public(), health),
    Route("GET", "/", Public(), versions),
    Route("GET", "/versions", Public(), versions),
    Route("GET", "/v1", Public(), versions),
]
