"""
Wait conditions, which wait for signals, and the handles that take the signals: OS::Heat::WaitCondition and SwiftSignal.

The metadata of a handle has the signals by their ids, each with ``status``, ``reason`` and ``data``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    WAKE,
    Context,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    Signalled,
    TakesSignals,
    is_waiting,
    physical_name,
    target_of,
    wait_until,
)
from stoker.resources.properties import Property
from stoker.store import resources
from stoker.transports.base import ObjectRef, SignalTransport, TransportTarget, needs_provisioning
from stoker.transports.heat import login_keys
from stoker.transports.swift import signal_place

#: Keys of a signal in the handle's metadata.
_PARTS = {"status", "reason", "data"}
SUCCESS, FAILURE = "SUCCESS", "FAILURE"


@dataclass(frozen=True, slots=True)
class Words:
    """The names of the properties and of the attribute, which differ between Heat's types and those of providers."""

    handle: str
    timeout: str
    count: str
    data: str


HEAT = Words(handle="handle", timeout="timeout", count="count", data="data")


def schema(words: Words, most: int | None = None) -> Mapping[str, Property]:
    """Return the properties of a wait condition. ``most``: limit of the signals to wait for."""
    return {
        words.handle: Property(kind="string", required=True, description="Reference of the handle."),
        words.timeout: Property(
            kind="number", required=True, minimum=1, maximum=43200, description="Seconds to wait for the signals."
        ),
        words.count: Property(
            kind="integer",
            default=1,
            minimum=1,
            maximum=most,
            update_allowed=True,
            description="Signals to wait for.",
        ),
    }


def _place(target: TransportTarget) -> ObjectRef:
    """Return the object for signals. Every version counts, because a signal may overwrite the previous one."""
    return signal_place(target, versions=True)


def _waiting(context: Context, kind: type[WaitType], reference: str | None) -> Iterator[str]:
    """Yield the ids of the stack's resources of this type that wait for the handle with this reference."""
    for resource in resources.in_progress(context.tx, context.stack_id):
        if resource.type == kind.name and resource.properties.get(kind.words.handle) == reference:
            yield resource.id


class WaitType(ResourceType):
    """A resource type that waits for signals to a handle."""

    description = "Waits for signals to a handle."
    words = HEAT
    properties = schema(HEAT)
    attributes = {HEAT.data: "What the signals brought, in JSON, by their ids."}

    def find_handle(self, context: Context, reference: str) -> Resource | None:
        """Return the handle by the reference in the template."""
        raise NotImplementedError

    def listen(self, context: Context, reference: str, until: datetime) -> None:
        """Expect signals to the handle with this reference until a time, if an external service takes them."""

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Start to wait."""
        if self._is_over(context, properties):
            return Outcome(physical_id=resource.id, data={})
        until = context.tx.now + timedelta(seconds=properties[self.words.timeout])
        self.listen(context, properties.get(self.words.handle) or "", until)
        return replace(wait_until(context, resource, until), physical_id=resource.id)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Wait again for the full time."""
        return self.create(context, resource, properties)

    def check(self, context: Context, resource: Resource) -> Outcome:
        if self._is_over(context, resource.properties):
            self.cancel(context, resource)
            reference = resource.properties.get(self.words.handle)
            if set(_waiting(context, type(self), reference)) <= {resource.id}:
                self.listen(context, reference or "", context.tx.now)
            return DONE
        if is_waiting(context, resource):
            return Outcome(False)
        signals = self._signals(context, resource.properties)
        reasons = ";".join(str(signal["reason"]) for signal in signals.values())
        progress = f"{len(signals)} of {resource.properties[self.words.count]} received"
        raise ResourceFailure(f"{progress} - {reasons}" if reasons else progress)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        self.cancel(context, resource)
        return DONE

    def cancel(self, context: Context, resource: Resource) -> None:
        context.env.work.cancel(context.tx, WAKE, resource.id)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return json.dumps({id: signal["data"] for id, signal in self._signals(context, resource.properties).items()})

    def _is_over(self, context: Context, properties: Properties) -> bool:
        """Return whether enough signals have arrived. Raises ResourceFailure if one of them reports a failure."""
        signals = self._signals(context, properties)
        failures = [str(signal["reason"]) for signal in signals.values() if signal["status"] != SUCCESS]
        if failures:
            raise ResourceFailure(";".join(failures))
        return bool(len(signals) >= properties[self.words.count])

    def _signals(self, context: Context, properties: Properties) -> Mapping[str, Any]:
        handle = self.find_handle(context, properties.get(self.words.handle) or "")
        metadata = handle.metadata if handle is not None else {}
        # The template may define other metadata of the handle.
        return {
            id: signal for id, signal in metadata.items() if isinstance(signal, Mapping) and signal.keys() >= _PARTS
        }


def _target_of_handle(context: Context, id: str) -> TransportTarget:
    """Return the transport target of a handle, by its id alone: the current transaction may have created the handle."""
    return TransportTarget(
        resource_id=id,
        resource_name="",
        name="",
        stack_id=context.stack_id,
        stack_name=context.stack_name,
        project_id=context.project_id,
    )


class WaitCondition(WaitType):
    name = "OS::Heat::WaitCondition"

    def find_handle(self, context: Context, reference: str) -> Resource | None:
        return resources.with_physical_id(context.tx, context.stack_id, reference)

    def listen(self, context: Context, reference: str, until: datetime) -> None:
        """Expect signals in the handle's object and queue. Embedded services deliver signals without this request."""
        site, target = context.env.platform, _target_of_handle(context, reference)
        site.objects.await_result(context.tx, target, _place(target), until)
        site.queues.await_result(context.tx, target, until)


class SwiftSignal(WaitType):
    name = "OS::Heat::SwiftSignal"
    properties = schema(HEAT, most=1000)

    def find_handle(self, context: Context, reference: str) -> Resource | None:
        resource = resources.find(context.tx, self._id_in(reference))
        own = resource is not None and resource.stack_id == context.stack_id and resource.data.get("url") == reference
        return resource if own else None

    def listen(self, context: Context, reference: str, until: datetime) -> None:
        """Expect signals in the handle's object until a time."""
        target = _target_of_handle(context, self._id_in(reference))
        context.env.platform.objects.await_result(context.tx, target, _place(target), until)

    @staticmethod
    def _id_in(url: str) -> str:
        return url.partition("?")[0].rpartition("/")[2]


class HandleType(TakesSignals, ResourceType):
    """A resource type that takes signals for wait conditions of the type ``condition``."""

    condition: type[WaitType]

    def reference(self, context: Context, resource: Resource) -> Any:
        return resource.data.get("url") or super().reference(context, resource)

    def waiters(self, context: Context, resource: Resource) -> Iterator[str]:
        return _waiting(context, self.condition, self.reference(context, resource))

    def delete(self, context: Context, resource: Resource) -> Outcome:
        self.retain(context, resource)
        return DONE

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
        """Record a signal, all of whose parts are optional. Raises Invalid for a signal that Heat discards later."""
        keys = ("status", "reason", "data", "id")
        unknown = sorted(set(details) - set(keys))
        if unknown:
            raise Invalid(f"a signal to {resource.name} has {', '.join(keys)}, all optional, not {', '.join(unknown)}")
        number = len(resource.metadata) + 1
        whole = {"status": SUCCESS, "reason": f"Signal {number} received", "data": None, "id": number, **details}
        return record(resource, whole, keys)


def record(resource: Resource, details: Mapping[str, Any], keys: Sequence[str]) -> Signalled:
    """
    Add a signal to the handle's metadata. A repeated id overwrites the earlier signal. ``keys``: of its status, reason,
    data and id. Raises Invalid for another status.
    """
    status, reason, data, id = (details[key] for key in keys)
    if status not in (SUCCESS, FAILURE):
        raise Invalid(f"a signal's {keys[0]} is {SUCCESS} or {FAILURE}, not {status!r}")
    metadata = {**resource.metadata, str(id): {"status": status, "reason": str(reason), "data": data}}
    return Signalled(f"status:{status} reason:{reason}", replace(resource, metadata=metadata))


TOKEN_SIGNAL, TEMP_URL = "TOKEN_SIGNAL", "TEMP_URL_SIGNAL"


def _transport(context: Context, properties: Properties) -> SignalTransport | None:
    return context.env.transports.signal_transports.get(properties.get("signal_transport") or "")


def _login(context: Context, resource: Resource) -> dict[str, Any]:
    site = context.env.platform
    login = site.login(target_of(context, resource))
    return {**login_keys(site, login), "username": login.username, "domain_id": login.domain_id}


def _endpoint(context: Context, resource: Resource) -> str:
    stack = f"{context.env.platform.public_url}/v1/{context.project_id}/stacks/{context.stack_name}"
    return f"{stack}/{context.stack_id}/resources/{quote(resource.name, safe='')}/signal"


class WaitConditionHandle(HandleType):
    name = "OS::Heat::WaitConditionHandle"
    description = "Takes signals for wait conditions."
    condition = WaitCondition
    properties = {
        "signal_transport": Property(
            kind="string",
            default=TOKEN_SIGNAL,
            allowed=(TOKEN_SIGNAL, "CFN_SIGNAL", "HEAT_SIGNAL", TEMP_URL, "ZAQAR_SIGNAL", "NO_SIGNAL"),
            description="How it is signalled.",
        )
    }
    attributes = {
        "token": "What to send as X-Auth-Token with a signal.",
        "endpoint": "Where to send it.",
        "curl_cli": "A command that does.",
        "signal": "What other transports need, in JSON.",
    }
    agents_transport = "signal_transport"

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        target = target_of(context, resource)
        if properties.get("signal_transport") == TEMP_URL:
            context.env.platform.objects.open(context.tx, target, _place(target), context.stack_id)
        elif needs_provisioning(transport := _transport(context, properties)):
            transport.open(context.tx, context.env.platform, target)
        return Outcome(physical_id=resource.id)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return DONE

    def retain(self, context: Context, resource: Resource) -> None:
        """Delete the object or queue for the signals. Only Stoker may delete it."""
        target = target_of(context, resource)
        if resource.properties.get("signal_transport") == TEMP_URL:
            context.env.platform.objects.close(context.tx, target, _place(target))
        elif needs_provisioning(transport := _transport(context, resource.properties)):
            transport.close(context.tx, context.env.platform, target)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name == "signal":
            details = self._details(context, resource)
            return None if details is None else json.dumps(details)
        if resource.properties.get("signal_transport") != TOKEN_SIGNAL:
            return None
        endpoint = _endpoint(context, resource)
        token = context.env.signal_tokens.token(resource.id)
        curl = (
            f"curl -i -X POST -H 'X-Auth-Token: {token}' -H 'Content-Type: application/json' "
            f"-H 'Accept: application/json' {endpoint}"
        )
        return {"endpoint": endpoint, "token": token, "curl_cli": curl}[name]

    def _details(self, context: Context, resource: Resource) -> dict[str, Any] | None:
        """Return the attribute ``signal``; None for TOKEN_SIGNAL, which uses the other attributes."""
        site, target = context.env.platform, target_of(context, resource)
        match resource.properties.get("signal_transport"):
            case "CFN_SIGNAL":
                return {"alarm_url": site.signed_url(target, "waitcondition", "PUT")}
            case "HEAT_SIGNAL":
                return {**_login(context, resource), "alarm_url": _endpoint(context, resource)}
            case "TEMP_URL_SIGNAL":
                return {"alarm_url": site.objects.url(target, _place(target), "PUT")}
            case "ZAQAR_SIGNAL":
                return {**_login(context, resource), "queue_id": resource.id}
            case "NO_SIGNAL":
                return {}
        return None


class SwiftSignalHandle(HandleType):
    name = "OS::Heat::SwiftSignalHandle"
    description = "Takes signals that are put into an object. An empty object is a success."
    condition = SwiftSignal
    attributes = {
        "token": "None is needed: an empty text.",
        "endpoint": "Where to put a signal.",
        "curl_cli": "A command that does.",
    }

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        target, objects = target_of(context, resource), context.env.platform.objects
        objects.open(context.tx, target, _place(target), context.stack_id)
        url = objects.url(target, _place(target), "PUT")
        return Outcome(physical_id=physical_name(context, resource), data={"url": url})

    def retain(self, context: Context, resource: Resource) -> None:
        """Delete the object for the signals. Only Stoker may delete it."""
        target = target_of(context, resource)
        context.env.platform.objects.close(context.tx, target, _place(target))

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        url = resource.data.get("url")
        return {"token": "", "endpoint": url, "curl_cli": f"curl -i -X PUT '{url}'"}[name]
