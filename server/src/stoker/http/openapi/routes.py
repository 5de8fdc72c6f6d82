"""/openapi.json: the OpenAPI document of Heat's API and of Stoker's own. OpenStack documents the other APIs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from stoker.http import health, metrics
from stoker.http.access import PUBLIC
from stoker.http.agent.routes import ROUTES as AGENT
from stoker.http.contracts import operation
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.openapi.document import document
from stoker.http.relay.routes import ROUTES as RELAY
from stoker.http.request_context import RequestContext, Response, Route
from stoker.http.stoker.routes import ROUTES as STOKER


@operation(200, dict[str, Any])
def show(request: RequestContext) -> Response:
    """Return this document."""
    return Response(200, _render(request.app.settings.public_url))


ROUTES = [Route("GET", "/openapi.json", PUBLIC, show)]

_OWN = (*health.ROUTES, *metrics.ROUTES, *ROUTES, *AGENT, *RELAY)
DESCRIBED = (*_OWN, *HEAT, *STOKER)


@lru_cache(maxsize=1)
def _render(public_url: str) -> bytes:
    return msgspec.json.encode(document(DESCRIBED, public_url))
