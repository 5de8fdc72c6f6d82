"""Queues of the project's messaging service, signed URLs for their use without a login, and their subscribers."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from msgspec import to_builtins

from stoker.messaging import Messaging
from stoker.model.embedded import Queue, belongs_to_agents
from stoker.model.errors import WriteRefused
from stoker.model.stack import Resource
from stoker.policy.authorizer import audit_refused_writes
from stoker.resources.base import (
    DONE,
    Context,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.properties import Property
from stoker.store import queues

#: Zaqar's limit of a queue name in characters.
_NAME = 64


def messaging_of(context: Context) -> Messaging:
    """Return the embedded messaging service. Raises ResourceFailure if the service is external or disabled."""
    messaging = context.env.platform.messaging
    if messaging is None:
        raise ResourceFailure(
            "OS::Zaqar types need the messaging service that Stoker itself serves: messaging = embedded"
        )
    return messaging


class ZaqarQueue(ResourceType):
    name = "OS::Zaqar::Queue"
    description = "A queue of the messaging service."
    properties = {
        "name": Property(kind="string", longest=_NAME, description="Name of the queue."),
        "metadata": Property(kind="map", update_allowed=True, description="Metadata of the queue, for its users."),
    }
    attributes = {"href": "The queue's own URL."}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the queue. An existing queue is used as it is, as in Zaqar."""
        name = properties["name"] or physical_name(context, resource, _NAME)
        with audit_refused_writes(context.tx, self.name):
            messaging_of(context).create_queue(context.tx, context.project_id, name, properties["metadata"] or {})
        return Outcome(physical_id=name)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        messaging, name = messaging_of(context), resource.physical_id or ""
        metadata = properties["metadata"] or {}
        with audit_refused_writes(context.tx, self.name):
            messaging.create_queue(context.tx, context.project_id, name, metadata)
            messaging.update_metadata(context.tx, context.project_id, name, metadata)
        return DONE

    def delete(self, context: Context, resource: Resource) -> Outcome:
        if resource.physical_id:
            with suppress(WriteRefused):  # an agent's queue stays
                messaging_of(context).delete_queue(context.tx, context.project_id, resource.physical_id)
        return DONE

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return f"{context.env.platform.public_url}/messaging/v2/queues/{resource.physical_id}"


_METHODS = ("GET", "DELETE", "PATCH", "POST", "PUT")


class ZaqarSignedQueueUrl(ResourceType):
    name = "OS::Zaqar::SignedQueueURL"
    description = "A pre-signed URL of a queue."
    properties = {
        "queue": Property(kind="string", required=True, description="Name of the queue."),
        "paths": Property(kind="list", each=Property(kind="string"), description="What of the queue it opens."),
        "ttl": Property(kind="integer", minimum=1, maximum=3_153_600_000, description="Seconds that it lasts."),
        "methods": Property(kind="list", each=Property(kind="string", allowed=_METHODS), description="To what."),
    }
    attributes = {
        "signature": "What proves the leave.",
        "expires": "When it ends.",
        "paths": "What it opens.",
        "methods": "To what.",
        "project": "Whose queue it is.",
        "query_str": "All of it, as a query.",
    }

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        paths = [f"/v2/queues/{properties['queue']}/{path}" for path in properties["paths"] or ["messages"]]
        expires = context.tx.now + timedelta(seconds=properties["ttl"] or 86400)
        urls, methods = messaging_of(context).signed_urls, properties["methods"] or ["GET"]
        signed_url = to_builtins(urls.sign(context.project_id, paths, methods, expires))
        query = {
            "signature": signed_url["signature"],
            "expires": signed_url["expires"],
            "paths": ",".join(signed_url["paths"]),
            "methods": ",".join(signed_url["methods"]),
            "project_id": signed_url["project"],
            "queue_name": properties["queue"],
        }
        data = {**signed_url, "query_str": urlencode(query)}
        return Outcome(physical_id=physical_name(context, resource), data=data)


#: Zaqar's longest lifetime in seconds, which the service uses for Heat's unlimited lifetime.
_LONGEST = 3_153_600_000
_FOREVER = 220_367_260_800


def _body(properties: Properties) -> dict[str, Any]:
    # Heat's default for an unlimited lifetime exceeds the service's limit.
    ttl = min(properties["ttl"], _LONGEST)
    return {"subscriber": properties["subscriber"], "options": properties["options"] or {}, "ttl": ttl}


class ZaqarSubscription(ResourceType):
    name = "OS::Zaqar::Subscription"
    description = "A webhook that receives a queue's messages."
    properties = {
        "queue_name": Property(kind="string", required=True, description="Name of the queue."),
        "subscriber": Property(
            kind="string", required=True, update_allowed=True, description="URL that receives the messages."
        ),
        "ttl": Property(
            kind="integer",
            minimum=60,
            maximum=_FOREVER,
            default=_FOREVER,
            update_allowed=True,
            description="Seconds that it lasts.",
        ),
        "options": Property(kind="map", update_allowed=True, description="What the service knows of it."),
    }

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        subscriptions, queue = messaging_of(context).subscriptions, self._lock_queue(context, properties)
        return Outcome(physical_id=subscriptions.subscribe(context.tx, queue, _body(properties)))

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        subscriptions, queue = messaging_of(context).subscriptions, self._lock_queue(context, properties)
        subscriptions.change(context.tx, queue, resource.physical_id or "", _body(properties))
        return DONE

    def delete(self, context: Context, resource: Resource) -> Outcome:
        queue = queues.find(context.tx, context.project_id, resource.properties.get("queue_name") or "")
        if resource.physical_id and queue is not None and not belongs_to_agents(queue):
            queues.delete_subscription(context.tx, queue.id, resource.physical_id)
        return DONE

    def _lock_queue(self, context: Context, properties: Properties) -> Queue:
        with audit_refused_writes(context.tx, self.name):
            return messaging_of(context).lock_or_create(context.tx, context.project_id, properties["queue_name"])
