"""OS::Zaqar::Subscription: a subscriber that receives each message of a queue."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import DONE, Context, Outcome, Properties, ResourceType
from stoker.resources.properties import Property
from stoker.types.zaqar_queue import failing, messaging_of

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
        messaging, queue = messaging_of(context), properties["queue_name"]
        with failing():
            id = messaging.subscribe(context.tx, context.project_id, queue, _body(properties))
        return Outcome(physical_id=id)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        messaging, queue, id = messaging_of(context), properties["queue_name"], resource.physical_id or ""
        with failing():
            messaging.resubscribe(context.tx, context.project_id, queue, id, _body(properties))
        return DONE

    def delete(self, context: Context, resource: Resource) -> Outcome:
        if resource.physical_id:
            queue = resource.properties.get("queue_name") or ""
            messaging_of(context).unsubscribe(context.tx, context.project_id, queue, resource.physical_id)
        return DONE
