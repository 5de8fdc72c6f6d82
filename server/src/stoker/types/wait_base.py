"""Shared functions of wait conditions: resource types that wait for signals to a handle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from stoker.hot.words import clip
from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    WAKE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    wake_at,
)
from stoker.resources.properties import Property
from stoker.store import resources
from stoker.transports.base import TransportTarget

#: Keys of a signal in the handle's metadata.
_PARTS = {"status", "reason", "data"}
SUCCESS, FAILURE = "SUCCESS", "FAILURE"


@dataclass(frozen=True, slots=True)
class Words:
    """The names of the properties and of the attribute, which differ between Heat's and CloudFormation's types."""

    handle: str
    timeout: str
    count: str
    data: str


#: The names in Heat's types.
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
        until = context.tx.now + timedelta(seconds=properties[self.words.timeout])
        if self._is_over(context, properties):
            return Outcome(physical_id=resource.id, data={})
        wake_at(context, resource, until)
        self.listen(context, properties.get(self.words.handle) or "", until)
        return Outcome(False, physical_id=resource.id, data={"until": until.isoformat()})

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Wait again for the full time."""
        return self.create(context, resource, properties)

    def check(self, context: Context, resource: Resource) -> Outcome:
        if self._is_over(context, resource.properties):
            self.cancel(context, resource)
            reference = resource.properties.get(self.words.handle)
            if set(waiters(context, self.name, self.words.handle, reference)) <= {resource.id}:
                self.listen(context, reference or "", context.tx.now)
            return Outcome()
        until = resource.data.get("until")
        if until is not None and context.tx.now < datetime.fromisoformat(until):
            return Outcome(False)
        signals = self._signals(context, resource.properties)
        reasons = ";".join(str(signal["reason"]) for signal in signals.values())
        progress = f"{len(signals)} of {resource.properties[self.words.count]} received"
        raise ResourceFailure(clip(f"{progress} - {reasons}" if reasons else progress))

    def delete(self, context: Context, resource: Resource) -> Outcome:
        self.cancel(context, resource)
        return DONE

    def cancel(self, context: Context, resource: Resource) -> None:
        context.env.work.cancel(context.tx, WAKE, resource.id)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name != self.words.data:
            raise NoSuchAttribute(name)
        return json.dumps({id: signal["data"] for id, signal in self._signals(context, resource.properties).items()})

    def _is_over(self, context: Context, properties: Properties) -> bool:
        """Return whether enough signals have arrived. Raises ResourceFailure if one of them reports a failure."""
        signals = self._signals(context, properties)
        failures = [str(signal["reason"]) for signal in signals.values() if signal["status"] != SUCCESS]
        if failures:
            raise ResourceFailure(clip(";".join(failures)))
        return bool(len(signals) >= properties[self.words.count])

    def _signals(self, context: Context, properties: Properties) -> Mapping[str, Any]:
        handle = self.find_handle(context, properties.get(self.words.handle) or "")
        metadata = handle.metadata if handle is not None else {}
        # The template may define other metadata of the handle.
        return {
            id: signal for id, signal in metadata.items() if isinstance(signal, Mapping) and signal.keys() >= _PARTS
        }


def waiters(context: Context, type_name: str, property_name: str, reference: str | None) -> Iterable[str]:
    """Return the ids of the stack's resources of this type that wait for the handle with this reference."""
    for resource in resources.in_progress(context.tx, context.stack_id):
        if resource.type == type_name and resource.properties.get(property_name) == reference:
            yield resource.id


def target_of_handle(context: Context, id: str) -> TransportTarget:
    """Return the transport target of a handle, by its id alone: the current transaction may have created the handle."""
    return TransportTarget(
        resource_id=id,
        resource_name="",
        name="",
        stack_id=context.stack_id,
        stack_name=context.stack_name,
        project_id=context.project_id,
    )


def record_signal(resource: Resource, id: str, status: str, reason: str, data: Any) -> Mapping[str, Any]:
    """Return the handle's metadata with one more signal. A repeated id overwrites the earlier signal."""
    return {**resource.metadata, id: {"status": status, "reason": reason, "data": data}}
