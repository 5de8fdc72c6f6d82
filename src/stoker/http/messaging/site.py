"""/messaging/v2: versions, home document, ping and health."""

from __future__ import annotations

from typing import Any

from msgspec import field

from stoker.http.contracts import operation
from stoker.http.fields import Answer
from stoker.http.messaging.types import PageLink
from stoker.http.request_context import RequestContext, Response

_JSON: dict[str, Any] = {"application/json": {}}


class ZaqarVersion(Answer):
    id: str
    status: str
    updated: str
    media_types: list[dict[str, str]] = field(name="media-types")
    links: list[PageLink]


class MessagingHealth(Answer):
    catalog_reachable: bool
    storage_reachable: bool


@operation(300, {"versions": list[ZaqarVersion]})
def versions(request: RequestContext) -> Response:
    """List the API versions with complete URLs, because clients that discover versions do not know a base path yet."""
    version = ZaqarVersion(
        id="2",
        status="CURRENT",
        updated="2014-9-24T04:06:47Z",
        media_types=[{"base": "application/json", "type": "application/vnd.openstack.messaging-v2+json"}],
        links=[PageLink(rel="self", href=f"{request.app.settings.public_url}/messaging/v2/")],
    )
    return Response(300, {"versions": [version]})


@operation(200, {"resources": dict[str, Any]}, media_type="application/json-home")
def home(_: RequestContext) -> Response:
    """Return the home document: the paths of the API."""
    headers = {"Cache-Control": "max-age=86400"}
    return Response(200, {"resources": _HOME}, headers, media_type="application/json-home")


@operation(204)
def ping(request: RequestContext) -> Response:
    """Return 204 if the database answers; otherwise the read transaction raises Unavailable (503)."""
    with request.app.store.read():
        return Response(204)


@operation(200, MessagingHealth)
def health(request: RequestContext) -> Response:
    """Return that the storage answers; otherwise the read transaction raises Unavailable (503)."""
    with request.app.store.read():
        return Response(200, MessagingHealth(catalog_reachable=True, storage_reachable=True))


def _resource(methods: str, path: str) -> dict[str, Any]:
    return {"href-template": f"/v2{path}", "hints": {"allow": methods.split(), "formats": _JSON}}


_QUEUE = "/queues/{queue_name}"
_MESSAGE, _CLAIM = _QUEUE + "/messages/{message_id}", _QUEUE + "/claims/{claim_id}"
_SUBSCRIPTION = _QUEUE + "/subscriptions/{subscription_id}"
_HOME = {
    "rel/queues": _resource("GET", "/queues{?marker,limit,detailed,name,with_count}"),
    "rel/queue": _resource("GET PUT PATCH DELETE", _QUEUE),
    "rel/queue_stats": _resource("GET", _QUEUE + "/stats"),
    "rel/queue_share": _resource("POST", _QUEUE + "/share"),
    "rel/queue_purge": _resource("POST", _QUEUE + "/purge"),
    "rel/messages": _resource("GET", _QUEUE + "/messages{?marker,limit,echo,include_claimed,include_delayed,ids}"),
    "rel/post_messages": _resource("POST", _QUEUE + "/messages"),
    "rel/messages_delete": _resource("DELETE", _QUEUE + "/messages{?ids,pop,claim_ids}"),
    "rel/message": _resource("GET", _MESSAGE),
    "rel/message_delete": _resource("DELETE", _MESSAGE + "{?claim_id}"),
    "rel/post_claim": _resource("POST", _QUEUE + "/claims{?limit}"),
    "rel/claim": _resource("GET PATCH DELETE", _CLAIM),
    "rel/subscriptions": _resource("GET", _QUEUE + "/subscriptions{?marker,limit}"),
    "rel/subscriptions_post": _resource("POST", _QUEUE + "/subscriptions"),
    "rel/subscription": _resource("GET PATCH DELETE", _SUBSCRIPTION),
    "rel/subscription_confirm": _resource("PUT", _SUBSCRIPTION + "/confirm"),
    "rel/ping": _resource("GET HEAD", "/ping"),
    "rel/health": _resource("GET", "/health"),
}
