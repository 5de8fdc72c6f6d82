"""SwiftSignal: waits for signals that are written to the object of a handle, at a signed URL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceType,
    Signalled,
    TakesSignals,
    physical_name,
    target_of,
)
from stoker.store import resources
from stoker.transports.base import ObjectRef, TransportTarget
from stoker.transports.temp_url_signal import signal_place
from stoker.types.wait_base import HEAT, WaitType, schema, target_of_handle, waiters
from stoker.types.wait_condition import signal

SWIFT_SIGNAL = "OS::Heat::SwiftSignal"
_ATTRIBUTES = {
    "token": "None is needed: an empty text.",
    "endpoint": "Where to put a signal.",
    "curl_cli": "A command that does.",
}


def _place(target: TransportTarget) -> ObjectRef:
    return signal_place(target, versions=True)


def _id_in(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


class SwiftSignalHandle(TakesSignals, ResourceType):
    name = "OS::Heat::SwiftSignalHandle"
    description = "Takes signals that are put into an object."
    attributes = _ATTRIBUTES

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        target, objects = target_of(context, resource), context.env.platform.objects
        objects.open(context.tx, target, _place(target), context.stack_id)
        url = objects.url(target, _place(target), "PUT")
        return Outcome(physical_id=physical_name(context, resource), data={"url": url})

    def delete(self, context: Context, resource: Resource) -> Outcome:
        self.retain(context, resource)
        return DONE

    def retain(self, context: Context, resource: Resource) -> None:
        """Delete the object for the signals. Only Stoker may delete it."""
        target = target_of(context, resource)
        context.env.platform.objects.close(context.tx, target, _place(target))

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        url = resource.data.get("url")
        values = {"token": "", "endpoint": url, "curl_cli": f"curl -i -X PUT '{url}'"}
        if name not in values:
            raise NoSuchAttribute(name)
        return values[name]

    def reference(self, context: Context, resource: Resource) -> Any:
        return resource.data.get("url") or resource.name

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
        """Record a signal in the format of OS::Heat::WaitConditionHandle; an empty object is a success."""
        return signal(resource, details)

    def waiters(self, context: Context, resource: Resource) -> Iterable[str]:
        return waiters(context, SWIFT_SIGNAL, "handle", resource.data.get("url"))


class SwiftSignal(WaitType):
    name = SWIFT_SIGNAL
    properties = schema(HEAT, most=1000)

    def find_handle(self, context: Context, reference: str) -> Resource | None:
        resource = resources.find(context.tx, _id_in(reference))
        own = resource is not None and resource.stack_id == context.stack_id and resource.data.get("url") == reference
        return resource if own else None

    def listen(self, context: Context, reference: str, until: datetime) -> None:
        """Expect signals in the handle's object until a time."""
        target = target_of_handle(context, _id_in(reference))
        context.env.platform.objects.await_result(context.tx, target, _place(target), until)
