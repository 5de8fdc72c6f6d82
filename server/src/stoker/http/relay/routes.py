"""Routes of the relay API, and /relay/v1/install: the install script for the agents of a relay's site."""

from __future__ import annotations

from stoker.http.access import RELAY_KEY, Access
from stoker.http.agent.downloads import file_response
from stoker.http.api import Route
from stoker.http.contracts import Success, operation
from stoker.http.relay import changes
from stoker.http.request import RequestContext, Response
from stoker.model.errors import Unauthorized
from stoker.servers.agent_bundle import Endpoint
from stoker.store import relays
from stoker.store.tx import Tx

_KEY = Access(RELAY_KEY)


@operation(200, bytes, headers=("ETag",), media_type="text/x-python", also={304: Success(headers=("ETag",))})
def script(request: RequestContext, tx: Tx) -> Response:
    """Return the install script of the agent, with the relay's URL and certificates."""
    relay = relays.find(tx, request.relay)
    if relay is None:
        raise Unauthorized("This relay's key is not valid, or has been revoked.")
    content = request.app.servers.agent_bundle.script_for(Endpoint(relay.url, relay.ca))
    return file_response(request, content, "text/x-python")


ROUTES = [
    Route("POST", "/relay/v1/changes", _KEY, changes.follow, changes.BODY_BYTES),
    Route("GET", "/relay/v1/install", _KEY, script),
]
