"""OS::Zaqar::Queue: a queue of the project's messaging service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stoker.model.errors import Conflict, Invalid
from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.properties import Property
from stoker.transports.base import Messaging

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


@contextmanager
def failing() -> Iterator[None]:
    """Convert errors of the messaging service into a ResourceFailure."""
    try:
        yield
    except (Invalid, Conflict) as error:
        raise ResourceFailure(error.message) from None


class ZaqarQueue(ResourceType):
    name = "OS::Zaqar::Queue"
    description = "A queue of the messaging service."
    properties = {
        "name": Property(kind="string", longest=_NAME, description="Name of the queue."),
        "metadata": Property(kind="map", update_allowed=True, description="What is said of the queue."),
    }
    attributes = {"href": "The queue's own URL."}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the queue. An existing queue is used as it is, as in Zaqar."""
        name = properties["name"] or physical_name(context, resource, _NAME)
        with failing():
            messaging_of(context).create(context.tx, context.project_id, name, properties["metadata"] or {})
        return Outcome(physical_id=name)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        name = resource.physical_id or ""
        with failing():
            messaging_of(context).describe(context.tx, context.project_id, name, properties["metadata"] or {})
        return DONE

    def delete(self, context: Context, resource: Resource) -> Outcome:
        if resource.physical_id:
            messaging_of(context).delete(context.tx, context.project_id, resource.physical_id)
        return DONE

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name != "href":
            raise NoSuchAttribute(name)
        return f"{messaging_of(context).url}/v2/queues/{resource.physical_id}"
