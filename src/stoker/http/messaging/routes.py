"""Routes of the messaging API, a subset of Zaqar's."""

from __future__ import annotations

from stoker.http.access import MEMBER, READER, Public
from stoker.http.messaging import claims, messages, queues, share, site, subscriptions
from stoker.http.messaging.access import MOUNTED_AT, QueueAccess
from stoker.http.request_context import Route
from stoker.messaging import limits

_V2 = MOUNTED_AT + "/v2"
_QUEUES = _V2 + "/queues"
_QUEUE = _QUEUES + "/{queue}"
_MESSAGES, _CLAIMS, _SUBSCRIPTIONS = _QUEUE + "/messages", _QUEUE + "/claims", _QUEUE + "/subscriptions"
_MESSAGE, _CLAIM = _MESSAGES + "/{message_id}", _CLAIMS + "/{claim_id}"
_SUBSCRIPTION = _SUBSCRIPTIONS + "/{subscription_id}"
_READ, _WRITE = QueueAccess(READER), QueueAccess(MEMBER)
#: Maximum bytes of small bodies.
_SMALL = limits.METADATA_SIZE

ROUTES = [
    Route("GET", MOUNTED_AT, Public(), site.versions),
    Route("GET", _V2, Public(), site.home),
    Route("GET", _V2 + "/ping", Public(), site.ping),
    Route("HEAD", _V2 + "/ping", Public(), site.ping),
    Route("GET", _V2 + "/health", Public(), site.health),
    Route("GET", _QUEUES, _READ, queues.index),
    Route("PUT", _QUEUE, _WRITE, queues.put, _SMALL),
    Route("GET", _QUEUE, _READ, queues.show),
    Route("PATCH", _QUEUE, _WRITE, queues.patch, _SMALL),
    Route("DELETE", _QUEUE, _WRITE, queues.delete),
    Route("GET", _QUEUE + "/stats", _READ, queues.stats),
    Route("POST", _QUEUE + "/purge", _WRITE, queues.purge, _SMALL),
    Route("POST", _QUEUE + "/share", _WRITE, share.create, _SMALL),
    Route("POST", _MESSAGES, _WRITE, messages.post, limits.POST_SIZE),
    #: The hooks of heat-agents use version 1.1.
    Route("POST", MOUNTED_AT + "/v1.1/queues/{queue}/messages", _WRITE, messages.post, limits.POST_SIZE),
    Route("GET", _MESSAGES, _READ, messages.index),
    Route("DELETE", _MESSAGES, _WRITE, messages.delete_several),
    Route("GET", _MESSAGE, _READ, messages.show),
    Route("DELETE", _MESSAGE, _WRITE, messages.delete),
    Route("POST", _CLAIMS, _WRITE, claims.create, _SMALL),
    Route("GET", _CLAIM, _READ, claims.show),
    Route("PATCH", _CLAIM, _WRITE, claims.change, _SMALL),
    Route("DELETE", _CLAIM, _WRITE, claims.delete),
    Route("GET", _SUBSCRIPTIONS, _READ, subscriptions.index),
    Route("POST", _SUBSCRIPTIONS, _WRITE, subscriptions.create, _SMALL),
    Route("GET", _SUBSCRIPTION, _READ, subscriptions.show),
    Route("PATCH", _SUBSCRIPTION, _WRITE, subscriptions.change, _SMALL),
    Route("DELETE", _SUBSCRIPTION, _WRITE, subscriptions.delete),
    Route("PUT", _SUBSCRIPTION + "/confirm", _WRITE, subscriptions.confirm, _SMALL),
]
