"""OS::Heat::SwiftSignalHandle: an object whose pre-signed URL takes signals."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import DONE, Context, NoSuchAttribute, Outcome, Properties, ResourceType, party_of
from stoker.resources.wait_condition_handle import signal
from stoker.resources.waiting import party_of_handle, waiters
from stoker.store import resources
from stoker.transports.base import Party, Place
from stoker.transports.temp_url_signal import signal_place

SWIFT_SIGNAL = "OS::Heat::SwiftSignal"
_ATTRIBUTES = {
    "token": "None is needed: an empty text.",
    "endpoint": "Where to put a signal.",
    "curl_cli": "A command that does.",
}


def create(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    party, objects = party_of(context, resource), context.services.site.objects
    objects.open(context.tx, party, _place(party), context.stack_id)
    url = objects.url(party, _place(party), "PUT")
    return Outcome(physical_id=resource.id, data={"url": url})


def delete(context: Context, resource: Resource) -> Outcome:
    party = party_of(context, resource)
    context.services.site.objects.close(context.tx, party, _place(party))
    return DONE


def listen(context: Context, url: str, until: datetime) -> None:
    """Signals are waited for, until then."""
    party = party_of_handle(context, _id_in(url))
    context.services.site.objects.expect(context.tx, party, _place(party), until)


def _place(party: Party) -> Place:
    return signal_place(party, versions=True)


def reference(resource: Resource) -> Any:
    return resource.data.get("url") or resource.name


def attribute(_context: Context, resource: Resource, name: str) -> Any:
    url = resource.data.get("url")
    known = {"token": "", "endpoint": url, "curl_cli": f"curl -i -X PUT '{url}'"}
    if name not in known:
        raise NoSuchAttribute(name)
    return known[name]


def waiting_for(context: Context, resource: Resource) -> Iterable[str]:
    return waiters(context, SWIFT_SIGNAL, "handle", resource.data.get("url"))


def of_url(context: Context, url: str) -> Resource | None:
    """The handle of this very stack that the URL is for."""
    found = resources.find(context.tx, _id_in(url))
    own = found is not None and found.stack_id == context.stack_id and found.data.get("url") == url
    return found if own else None


def _id_in(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


TYPE = ResourceType(
    name="OS::Heat::SwiftSignalHandle",
    properties={},
    attributes=_ATTRIBUTES,
    create=create,
    delete=delete,
    attribute=attribute,
    reference=reference,
    # As a wait condition's; an empty one is a success.
    signal=signal,
    waiters=waiting_for,
    description="Takes signals that are put into an object.",
)
