"""The messaging API, compatible with Zaqar's API v2, of which it is a subset: its routes."""

from __future__ import annotations

from stoker.http.access import MEMBER, PUBLIC, READER
from stoker.http.api import Api, Failure, Route
from stoker.http.messaging import messages, queues
from stoker.http.messaging.access import MOUNTED_AT, queue_access
from stoker.http.request import Response
from stoker.http.threads import LOOKUPS
from stoker.messaging import limits

_V2 = MOUNTED_AT + "/v2"
_QUEUES = _V2 + "/queues"
_QUEUE = _QUEUES + "/{queue}"
_MESSAGES, _SUBSCRIPTIONS = _QUEUE + "/messages", _QUEUE + "/subscriptions"
_MESSAGE = _MESSAGES + "/{message_id}"
_SUBSCRIPTION = _SUBSCRIPTIONS + "/{subscription_id}"
_READ, _WRITE = queue_access(READER), queue_access(MEMBER)
#: Maximum bytes of small bodies.
_SMALL = limits.METADATA_SIZE

ROUTES = [
    Route("GET", MOUNTED_AT, PUBLIC, queues.versions),
    Route("GET", _QUEUES, _READ, queues.index),
    Route("PUT", _QUEUE, _WRITE, queues.put, _SMALL),
    Route("GET", _QUEUE, _READ, queues.show),
    Route("PATCH", _QUEUE, _WRITE, queues.patch, _SMALL),
    Route("DELETE", _QUEUE, _WRITE, queues.delete),
    Route("POST", _QUEUE + "/share", _WRITE, queues.share, _SMALL),
    Route("POST", _MESSAGES, _WRITE, messages.post, limits.POST_SIZE),
    #: The hooks of heat-agents use version 1.1.
    Route("POST", MOUNTED_AT + "/v1.1/queues/{queue}/messages", _WRITE, messages.post, limits.POST_SIZE),
    Route("GET", _MESSAGES, _READ, messages.index),
    Route("DELETE", _MESSAGES, _WRITE, messages.delete_several),
    Route("GET", _MESSAGE, _READ, messages.show),
    Route("DELETE", _MESSAGE, _WRITE, messages.delete),
    Route("GET", _SUBSCRIPTIONS, _READ, queues.index_subscriptions),
    Route("POST", _SUBSCRIPTIONS, _WRITE, queues.create_subscription, _SMALL, limit=LOOKUPS),
    Route("GET", _SUBSCRIPTION, _READ, queues.show_subscription),
    Route("PATCH", _SUBSCRIPTION, _WRITE, queues.change_subscription, _SMALL, limit=LOOKUPS),
    Route("DELETE", _SUBSCRIPTION, _WRITE, queues.delete_subscription),
]


def _render(failure: Failure) -> Response:
    content = {"title": failure.title, "description": failure.message or failure.explanation}
    return Response(failure.status, content, failure.headers)


API = Api("messaging", ROUTES, _render)
