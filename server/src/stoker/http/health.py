"""GET /healthz and the list of API versions."""

from __future__ import annotations

from typing import Literal

from stoker.http.access import PUBLIC
from stoker.http.contracts import operation
from stoker.http.fields import Answer, Link
from stoker.http.request_context import RequestContext, Response, Route
from stoker.model.errors import Unavailable
from stoker.version import VERSION


class Version(Answer):
    id: str
    status: str
    links: list[Link]


@operation(200, {"status": Literal["ok", "degraded"], "version": str, "warnings": list[str]})
async def health(request: RequestContext) -> Response:
    """
    Return whether every check of the health report passes. The status 503 names the failed checks.

    A degraded service works, with warnings that need an administrator.

    Raises Unavailable.
    """
    # Runs on the event loop and does not read the database.
    problems = request.app.health.problems()
    if problems:
        raise Unavailable("; ".join(f"{name}: {reason}" for name, reason in problems.items()))
    warnings = [f"{name}: {reason}" for name, reason in request.app.health.warnings().items()]
    return Response(200, {"status": "degraded" if warnings else "ok", "version": VERSION, "warnings": warnings})


@operation(300, {"versions": list[Version]})
def versions(request: RequestContext) -> Response:
    """List the versions of the API, as Heat does."""
    links = [{"rel": "self", "href": f"{request.app.settings.public_url}/v1/"}]
    return Response(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": links}]})


ROUTES = [
    Route("GET", "/healthz", PUBLIC, health),
    Route("GET", "/", PUBLIC, versions),
    Route("GET", "/versions", PUBLIC, versions),
    Route("GET", "/v1", PUBLIC, versions),
]
