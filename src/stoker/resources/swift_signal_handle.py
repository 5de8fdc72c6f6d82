"""OS::Heat::SwiftSignalHandle: an object whose pre-signed URL takes signals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import DONE, Context, NoSuchAttribute, Outcome, Properties, ResourceType, Signalled, party_of
from stoker.resources.wait_condition_handle import signal as take
from stoker.resources.waiting import waiters
from stoker.store import resources
from stoker.transports.temp_url_signal import signal_place

SWIFT_SIGNAL = "OS::Heat::SwiftSignal"
_ATTRIBUTES = {
    "token": "None is needed: an empty text.",
    "endpoint": "Where to put a signal.",
    "curl_cli": "A command that does.",
}


def create(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    party, objects = party_of(context, resource), context.services.site.objects
    objects.open(context.tx, party, signal_place(party), context.stack_id)
    url = objects.url(party, signal_place(party), "PUT")
    return Outcome(physical_id=resource.id, data={"url": url})


def delete(context: Context, resource: Resource) -> Outcome:
    party = party_of(context, resource)
    context.services.site.objects.close(context.tx, party, signal_place(party))
    return DONE


def reference(resource: Resource) -> Any:
    return resource.data.get("url") or resource.name


def attribute(_context: Context, resource: Resource, name: str) -> Any:
    url = resource.data.get("url")
    known = {"token": "", "endpoint": url, "curl_cli": f"curl -i -X PUT '{url}'"}
    if name not in known:
        raise NoSuchAttribute(name)
    return known[name]


def signal(context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
    """As a wait condition's; an empty one is a success. Raises Invalid."""
    return take(context, resource, details)


def waiting_for(context: Context, resource: Resource) -> Iterable[str]:
    return waiters(context, SWIFT_SIGNAL, "handle", resource.data.get("url"))


def of_url(context: Context, url: str) -> Resource | None:
    """The handle of this very stack that the URL is for."""
    path = url.partition("?")[0]
    found = resources.find(context.tx, path.rpartition("/")[2])
    own = found is not None and found.stack_id == context.stack_id and found.data.get("url") == url
    return found if own else None


TYPE = ResourceType(
    name="OS::Heat::SwiftSignalHandle",
    properties={},
    attributes=_ATTRIBUTES,
    create=create,
    delete=delete,
    attribute=attribute,
    reference=reference,
    signal=signal,
    waiters=waiting_for,
    description="Takes signals that are put into an object.",
)
