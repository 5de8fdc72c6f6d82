"""Shared functions of wait conditions: resource types that wait for signals to a handle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
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

#: Finds the handle by the reference in the template.
Find = Callable[[Context, str], Resource | None]
#: Expects signals to the handle with this reference until a time.
Listen = Callable[[Context, str, datetime], None]


@dataclass(frozen=True, slots=True)
class Words:
    """The names of the properties and of the attribute, which differ between Heat's and CloudFormation's types."""

    handle: str
    timeout: str
    count: str
    data: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    type_name: str
    words: Words
    find: Find
    listen: Listen | None

    def wait(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Start to wait. An update waits again for the full time."""
        until = context.tx.now + timedelta(seconds=properties[self.words.timeout])
        if self._is_over(context, properties):
            return Outcome(physical_id=resource.id, data={})
        wake_at(context, resource, until)
        self._listen(context, properties, until)
        return Outcome(False, physical_id=resource.id, data={"until": until.isoformat()})

    def check(self, context: Context, resource: Resource) -> Outcome:
        if self._is_over(context, resource.properties):
            context.env.work.cancel(context.tx, WAKE, resource.id)
            reference = resource.properties.get(self.words.handle)
            if set(waiters(context, self.type_name, self.words.handle, reference)) <= {resource.id}:
                self._listen(context, resource.properties, context.tx.now)
            return Outcome()
        until = resource.data.get("until")
        if until is not None and context.tx.now < datetime.fromisoformat(until):
            return Outcome(False)
        signals = self._signals(context, resource.properties)
        reasons = ";".join(str(signal["reason"]) for signal in signals.values())
        progress = f"{len(signals)} of {resource.properties[self.words.count]} received"
        raise ResourceFailure(clip(f"{progress} - {reasons}" if reasons else progress))

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

    def _listen(self, context: Context, properties: Properties, until: datetime) -> None:
        if self.listen is not None:
            self.listen(context, properties.get(self.words.handle) or "", until)

    def _signals(self, context: Context, properties: Properties) -> Mapping[str, Any]:
        handle = self.find(context, properties.get(self.words.handle) or "")
        metadata = handle.metadata if handle is not None else {}
        # The template may define other metadata of the handle.
        return {
            id: signal for id, signal in metadata.items() if isinstance(signal, Mapping) and signal.keys() >= _PARTS
        }


def _cancel(context: Context, resource: Resource) -> None:
    context.env.work.cancel(context.tx, WAKE, resource.id)


def _delete(context: Context, resource: Resource) -> Outcome:
    _cancel(context, resource)
    return DONE


def wait_type(
    name: str, words: Words, find: Find, listen: Listen | None = None, *, most: int | None = None
) -> ResourceType:
    """
    Return a resource type that waits for signals to a handle.

    ``listen``: requests results from an external service, if signals can arrive at one. ``most``: limit of the signals
    to wait for.
    """
    waiting = _Waiting(name, words, find, listen)
    return ResourceType(
        name=name,
        properties={
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
        },
        attributes={words.data: "What the signals brought, in JSON, by their ids."},
        create=waiting.wait,
        update=waiting.wait,
        check=waiting.check,
        delete=_delete,
        cancel=_cancel,
        attribute=waiting.attribute,
        description="Waits for signals to a handle.",
    )


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
