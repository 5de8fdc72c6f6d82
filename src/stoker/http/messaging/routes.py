"""What of Zaqar's API Stoker speaks."""

from __future__ import annotations

from stoker.http.access import Public
from stoker.http.call import Route
from stoker.http.messaging import claims, messages, queues, share, site, subscriptions
from stoker.http.messaging.access import MOUNTED_AT, QueueAccess
from stoker.messaging import limits

_V2 = MOUNTED_AT + "/v2"
_QUEUES = _V2 + "/queues"
_QUEUE = _QUEUES + "/{queue}"
_MESSAGES, _CLAIMS, _SUBSCRIPTIONS = _QUEUE + "/messages", _QUEUE + "/claims", _QUEUE + "/subscriptions"
_MESSAGE, _CLAIM = _MESSAGES + "/{message_id}", _CLAIMS + "/{claim_id}"
_SUBSCRIPTION = _SUBSCRIPTIONS + "/{subscription_id}"
_MINE = QueueAccess()
#: Bytes of what is small.
_SMALL = limits.METADATA_SIZE

ROUTES = [
    Route("GET", MOUNTED_AT, Public(), site.versions),
    Route("GET", _V2, Public(), site.home),
    Route("GET", _V2 + "/ping", Public(), site.ping),
    Route("HEAD", _V2 + "/ping", Public(), site.ping),
    Route("GET", _V2 + "/health", Public(), site.health),
    Route("GET", _QUEUES, _MINE, queues.index),
    Route("PUT", _QUEUE, _MINE, queues.put, _SMALL),
    Route("GET", _QUEUE, _MINE, queues.show),
    Route("PATCH", _QUEUE, _MINE, queues.patch, _SMALL),
    Route("DELETE", _QUEUE, _MINE, queues.delete),
    Route("GET", _QUEUE + "/stats", _MINE, queues.stats),
    Route("POST", _QUEUE + "/purge", _MINE, queues.purge, _SMALL),
    Route("POST", _QUEUE + "/share", _MINE, share.create, _SMALL),
    Route("POST", _MESSAGES, _MINE, messages.post, limits.POST_SIZE),
    #: heat-agents' hooks still speak the version before.
    Route("POST", MOUNTED_AT + "/v1.1/queues/{queue}/messages", _MINE, messages.post, limits.POST_SIZE),
    Route("GET", _MESSAGES, _MINE, messages.index),
    Route("DELETE", _MESSAGES, _MINE, messages.delete_several),
    Route("GET", _MESSAGE, _MINE, messages.show),
    Route("DELETE", _MESSAGE, _MINE, messages.delete),
    Route("POST", _CLAIMS, _MINE, claims.create, _SMALL),
    Route("GET", _CLAIM, _MINE, claims.show),
    Route("PATCH", _CLAIM, _MINE, claims.change, _SMALL),
    Route("DELETE", _CLAIM, _MINE, claims.delete),
    Route("GET", _SUBSCRIPTIONS, _MINE, subscriptions.index),
    Route("POST", _SUBSCRIPTIONS, _MINE, subscriptions.create, _SMALL),
    Route("GET", _SUBSCRIPTION, _MINE, subscriptions.show),
    Route("PATCH", _SUBSCRIPTION, _MINE, subscriptions.change, _SMALL),
    Route("DELETE", _SUBSCRIPTION, _MINE, subscriptions.delete),
    Route("PUT", _SUBSCRIPTION + "/confirm", _MINE, subscriptions.confirm, _SMALL),
]
