"""The APIs of a site, for given settings, and the OpenAPI document of Heat's API and of Stoker's own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from stoker.http import health, metrics, openapi
from stoker.http.access import PUBLIC, QUEUE_TOKEN, SIGNALS, Access
from stoker.http.agent import ROUTES as AGENT
from stoker.http.api import Api, Route
from stoker.http.cfn import API as CFN
from stoker.http.console import API as CONSOLE
from stoker.http.contracts import operation
from stoker.http.heat import ROUTES as HEAT
from stoker.http.identity import API as IDENTITY
from stoker.http.messaging import API as MESSAGING
from stoker.http.objects import API as OBJECTS
from stoker.http.relay import ROUTES as RELAY
from stoker.http.request import RequestContext, Response
from stoker.http.stoker import ROUTES as STOKER
from stoker.settings import Settings


@operation(200, dict[str, Any])
def show_openapi(request: RequestContext) -> Response:
    """Return this document."""
    return Response(200, _render(request.app.settings.public_url))


def poll_queue(request: RequestContext) -> Response:
    """
    Read a queue in which a result is expected now: an external Zaqar calls when a message is posted to it.

    The body is ignored.
    """
    if request.app.result_poller is not None and request.caller.resource is not None:
        request.app.result_poller.poll_now(request.caller.resource)
    return Response(204)


#: The routes of the OpenAPI document. OpenStack documents the other APIs.
DESCRIBED = (
    *(*health.ROUTES, *metrics.ROUTES, Route("GET", "/openapi.json", PUBLIC, show_openapi)),
    *(*AGENT, *RELAY, *HEAT, *STOKER),
)
_OWN = Api("", (*DESCRIBED, Route("POST", f"{SIGNALS}{{token}}", Access(QUEUE_TOKEN), poll_queue)))


def list_apis(settings: Settings) -> list[Api]:
    """Return the APIs of a site with these settings. Those of external services are left out."""
    absent = {
        IDENTITY: settings.at_keystone,
        MESSAGING: not settings.embeds_queues,
        OBJECTS: not settings.embeds_objects,
    }
    return [api for api in (_OWN, CFN, CONSOLE, IDENTITY, MESSAGING, OBJECTS) if not absent.get(api)]


@lru_cache(maxsize=1)
def _render(public_url: str) -> bytes:
    return msgspec.json.encode(openapi.document(DESCRIBED, public_url))
