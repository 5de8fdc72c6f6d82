"""/openapi.json: the OpenAPI document."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from stoker.http import health, metrics
from stoker.http.access import Public
from stoker.http.agent.routes import ROUTES as AGENT
from stoker.http.cfn.routes import ROUTES as CFN
from stoker.http.contracts import operation
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.identity.routes import ROUTES as IDENTITY
from stoker.http.messaging.routes import ROUTES as MESSAGING
from stoker.http.objects.routes import ROUTES as OBJECTS
from stoker.http.openapi.document import document
from stoker.http.relay.routes import ROUTES as RELAY
from stoker.http.request_context import RequestContext, Response, Route


@operation(200, dict[str, Any])
def show(request: RequestContext) -> Response:
    """Return this document."""
    return Response(200, _render(request.app.settings.public_url))


ROUTES = [Route("GET", "/openapi.json", Public(), show)]

_OWN = (*health.ROUTES, *metrics.ROUTES, *ROUTES, *AGENT, *RELAY)
_ALL = (*_OWN, *HEAT, *CFN, *IDENTITY, *MESSAGING, *OBJECTS)
#: OpenAPI has no COPY.
DESCRIBED = tuple(route for route in _ALL if route.verb != "COPY")


@lru_cache(maxsize=1)
def _render(public_url: str) -> bytes:
    return msgspec.json.encode(document(DESCRIBED, public_url))
