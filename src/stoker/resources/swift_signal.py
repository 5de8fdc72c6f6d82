"""SwiftSignal: waits for signals that are written to the object of a handle, at a signed URL."""

from __future__ import annotations

from collections.abc import Iterable
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
    physical_name,
    target_of,
)
from stoker.resources.wait_base import Words, target_of_handle, wait_type, waiters
from stoker.resources.wait_condition import signal
from stoker.store import resources
from stoker.transports.base import ObjectRef, TransportTarget
from stoker.transports.temp_url_signal import signal_place

SWIFT_SIGNAL = "OS::Heat::SwiftSignal"
_ATTRIBUTES = {
    "token": "None is needed: an empty text.",
    "endpoint": "Where to put a signal.",
    "curl_cli": "A command that does.",
}


def create(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    target, objects = target_of(context, resource), context.env.platform.objects
    objects.open(context.tx, target, _place(target), context.stack_id)
    url = objects.url(target, _place(target), "PUT")
    return Outcome(physical_id=physical_name(context, resource), data={"url": url})


def delete(context: Context, resource: Resource) -> Outcome:
    close(context, resource)
    return DONE


def close(context: Context, resource: Resource) -> None:
    """Delete the object for the signals. Only Stoker may delete it."""
    target = target_of(context, resource)
    context.env.platform.objects.close(context.tx, target, _place(target))


def listen(context: Context, url: str, until: datetime) -> None:
    """Expect signals in the handle's object until a time."""
    target = target_of_handle(context, _id_in(url))
    context.env.platform.objects.await_result(context.tx, target, _place(target), until)


def _place(target: TransportTarget) -> ObjectRef:
    return signal_place(target, versions=True)


def reference(_context: Context, resource: Resource) -> Any:
    return resource.data.get("url") or resource.name


def attribute(_context: Context, resource: Resource, name: str) -> Any:
    url = resource.data.get("url")
    values = {"token": "", "endpoint": url, "curl_cli": f"curl -i -X PUT '{url}'"}
    if name not in values:
        raise NoSuchAttribute(name)
    return values[name]


def waiting_for(context: Context, resource: Resource) -> Iterable[str]:
    return waiters(context, SWIFT_SIGNAL, "handle", resource.data.get("url"))


def of_url(context: Context, url: str) -> Resource | None:
    """Return the handle of this stack to which the URL belongs; None if there is none."""
    resource = resources.find(context.tx, _id_in(url))
    own = resource is not None and resource.stack_id == context.stack_id and resource.data.get("url") == url
    return resource if own else None


def _id_in(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


HANDLE = ResourceType(
    name="OS::Heat::SwiftSignalHandle",
    properties={},
    attributes=_ATTRIBUTES,
    create=create,
    delete=delete,
    retain=close,
    attribute=attribute,
    reference=reference,
    # The format is that of OS::Heat::WaitConditionHandle; an empty object is a success.
    signal=signal,
    waiters=waiting_for,
    description="Takes signals that are put into an object.",
)


_WORDS = Words(handle="handle", timeout="timeout", count="count", data="data")

SIGNAL = wait_type(SWIFT_SIGNAL, _WORDS, of_url, listen, most=1000)

TYPES = (HANDLE, SIGNAL)
