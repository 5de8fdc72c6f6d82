"""OS::Heat::WaitCondition: waits for signals to a handle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from stoker.hot.words import clip
from stoker.model.stack import Resource
from stoker.resources.base import (
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
from stoker.resources.wait_condition_handle import SUCCESS, WAIT_CONDITION
from stoker.store import resources

#: What a handle keeps of a signal.
_PARTS = {"status", "reason", "data"}


def wait(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """Also an update's: it waits anew, as long as the first time."""
    until = context.tx.now + timedelta(seconds=properties["timeout"])
    if _is_over(context, properties):
        return Outcome(physical_id=resource.id, data={})
    wake_at(context, resource, until)
    return Outcome(False, physical_id=resource.id, data={"until": until.isoformat()})


def check(context: Context, resource: Resource) -> Outcome:
    if _is_over(context, resource.properties):
        context.services.work.cancel(context.tx, WAKE, resource.id)
        return Outcome()
    until = resource.data.get("until")
    if until is not None and context.tx.now < datetime.fromisoformat(until):
        return Outcome(False)
    said = _signals(context, resource.properties)
    reasons = ";".join(str(each["reason"]) for each in said.values())
    heard = f"{len(said)} of {resource.properties['count']} received"
    raise ResourceFailure(clip(f"{heard} - {reasons}" if reasons else heard))


def _is_over(context: Context, properties: Properties) -> bool:
    """Raises ResourceFailure as soon as one says that it failed."""
    said = _signals(context, properties)
    failures = [str(each["reason"]) for each in said.values() if each["status"] != SUCCESS]
    if failures:
        raise ResourceFailure(clip(";".join(failures)))
    return bool(len(said) >= properties["count"])


def _signals(context: Context, properties: Properties) -> Mapping[str, Any]:
    handle = resources.with_physical_id(context.tx, context.stack_id, properties.get("handle") or "")
    said = handle.metadata if handle is not None else {}
    # The template may have given the handle metadata of its own.
    return {id: each for id, each in said.items() if isinstance(each, Mapping) and each.keys() >= _PARTS}


def cancel(context: Context, resource: Resource) -> None:
    context.services.work.cancel(context.tx, WAKE, resource.id)


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name != "data":
        raise NoSuchAttribute(name)
    return json.dumps({id: said["data"] for id, said in _signals(context, resource.properties).items()})


TYPE = ResourceType(
    name=WAIT_CONDITION,
    properties={
        "handle": Property(kind="string", required=True, description="Reference of the handle."),
        "timeout": Property(
            kind="number", required=True, minimum=1, maximum=43200, description="Seconds to wait for the signals."
        ),
        "count": Property(
            kind="integer", default=1, minimum=1, update_allowed=True, description="Signals to wait for."
        ),
    },
    attributes={"data": "What the signals brought, in JSON, by their ids."},
    create=wait,
    update=wait,
    check=check,
    cancel=cancel,
    attribute=attribute,
    description="Waits for signals to a handle.",
)
