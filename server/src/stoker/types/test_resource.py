"""OS::Heat::TestResource: waits, fails or requires replacement as its properties demand, for tests of templates."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import (
    DONE,
    LONGEST_WAIT,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    physical_name,
    wake_at,
)
from stoker.resources.properties import Property

_SECONDS = Property(kind="number", minimum=0, maximum=LONGEST_WAIT)
_ACTION_SECONDS = dict.fromkeys(("create", "update", "delete"), _SECONDS)


def _begin(context: Context, resource: Resource, properties: Properties) -> Outcome:
    waits = (properties["action_wait_secs"] or {}).get(resource.action.value.lower())
    seconds = properties["wait_secs"] if waits is None else waits
    if not seconds:
        return _end(context, resource, properties)
    until = context.tx.now + timedelta(seconds=seconds)
    wake_at(context, resource, until)
    return Outcome(False, physical_id=_id(context, resource), data={"until": until.isoformat()})


def _end(context: Context, resource: Resource, properties: Properties) -> Outcome:
    if properties["fail"] and resource.action is not Action.DELETE:
        raise ResourceFailure(f"Test Resource failed {resource.name}")
    return Outcome(physical_id=_id(context, resource))


def _id(context: Context, resource: Resource) -> str:
    return resource.physical_id or physical_name(context, resource)


class TestResource(ResourceType):
    name = "OS::Heat::TestResource"
    description = "Waits, fails, or is replaced as its properties say."
    properties = {
        "value": Property(kind="string", default="test_string", update_allowed=True, description="What output gives."),
        "fail": Property(kind="boolean", default=False, update_allowed=True, description="Fail, after any wait."),
        "update_replace": Property(
            kind="boolean", default=False, update_allowed=True, description="Be replaced by an update."
        ),
        "update_replace_value": Property(kind="string", description="Be replaced when this changes."),
        "wait_secs": Property(
            kind="number",
            default=0,
            minimum=0,
            maximum=LONGEST_WAIT,
            update_allowed=True,
            description="Seconds that every action takes.",
        ),
        "action_wait_secs": Property(
            kind="map", schema=_ACTION_SECONDS, update_allowed=True, description="Seconds that single actions take."
        ),
        "attr_wait_secs": Property(kind="number", default=0, update_allowed=True, description="Accepted; never waits."),
        "constraint_prop_secs": Property(kind="number", default=0, update_allowed=True, description="Accepted."),
        "client_name": Property(kind="string", update_allowed=True, description="Accepted."),
        "entity_name": Property(kind="string", update_allowed=True, description="Accepted."),
    }
    attributes = {"output": "The value."}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return _begin(context, resource, properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        if properties["update_replace"]:
            raise Replace(resource.name)
        return _begin(context, resource, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        return _begin(context, resource, resource.properties) if resource.properties else DONE

    def check(self, context: Context, resource: Resource) -> Outcome:
        until = resource.data.get("until")
        if until is not None and context.tx.now < datetime.fromisoformat(until):
            return Outcome(False)
        return _end(context, resource, resource.properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name != "output":
            raise NoSuchAttribute(name)
        return resource.properties.get("value")
