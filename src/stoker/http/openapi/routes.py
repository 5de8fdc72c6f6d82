"""/openapi.json: the OpenAPI document of the Heat API and the identity API."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from stoker.http import health
from stoker.http.access import Public
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.identity.routes import ROUTES as IDENTITY
from stoker.http.openapi.document import document
from stoker.http.openapi.heat import resources, site, stacks, templates, triggers
from stoker.http.openapi.operations import Noun, Operation, ok
from stoker.http.openapi.schemas import MAP
from stoker.http.request_context import RequestContext, Response, Route


def show(request: RequestContext) -> Response:
    return Response(200, _render(request.app.settings.public_url))


ROUTES = [Route("GET", "/openapi.json", Public(), show)]

DESCRIBED = (*health.ROUTES, *ROUTES, *HEAT, *IDENTITY)
NOUNS = (
    stacks.NOUN,
    resources.RESOURCES,
    resources.EVENTS,
    resources.SNAPSHOTS,
    triggers.TRIGGERS,
    triggers.SCHEDULES,
    templates.NOUN,
    site.SERVERS,
    site.AUDIT,
    site.SITE,
    Noun("The service", {show: Operation(summary="This document", answers=ok(MAP))}),
)


@lru_cache(maxsize=1)
def _render(public_url: str) -> bytes:
    return msgspec.json.encode(document(DESCRIBED, NOUNS, public_url))
