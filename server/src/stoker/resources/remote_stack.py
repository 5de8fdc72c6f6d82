"""
OS::Heat::Stack: an independent stack, on this site or on a remote Heat, with the lifetime of the resource.

The resource's ``data`` holds the requested action. A job sends the request and polls the stack until the action ends
(``stacks.remote_stacks``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from stoker.hot import UNKNOWN, select
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import (
    DONE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.properties import Property

#: Kind of the job that performs the action, keyed by the resource's id; its arguments: ``resource_id`` and ``task``.
REMOTE = "stack.remote"
_CONTEXT = {
    "region_name": Property(
        kind="string", longest=255, description="Region of the Heat to ask; its name is in remote_heats."
    ),
    "credential_secret_id": Property(kind="string", description="Refused: there is no Barbican to look it up in."),
    "ca_cert": Property(kind="string", description="Refused: the site's entry of clouds.yaml says what to trust."),
    "insecure": Property(kind="boolean", default=False, description="Refused when true, for the same reason."),
}


def _task(context: Context, resource: Resource, action: Action, properties: Properties) -> Outcome:
    region = (properties.get("context") or {}).get("region_name")
    if (problem := context.env.remote_heats.problem(region)) is not None:
        raise ResourceFailure(f"{problem}. {context.env.remote_heats.remedy()}")
    task = str(uuid4())
    context.env.work.defer_once(context.tx, REMOTE, resource.id, {"resource_id": resource.id, "task": task})
    wanted = {
        "task": task,
        "action": action.value,
        "region": region,
        "name": resource.data.get("name") or physical_name(context, resource),
        "body": {
            "template": properties.get("template"),
            "parameters": properties.get("parameters") or {},
            "timeout_mins": properties.get("timeout"),
            "disable_rollback": True,
        },
    }
    return Outcome(False, data={**resource.data, "name": wanted["name"], "wanted": wanted, "ended": None})


class RemoteStack(ResourceType):
    name = "OS::Heat::Stack"
    description = "A stack of its own, here or at another Heat."
    properties = {
        "template": Property(kind="string", required=True, update_allowed=True, description="The stack's template."),
        "parameters": Property(kind="map", update_allowed=True, description="Its parameters."),
        "timeout": Property(kind="integer", minimum=1, update_allowed=True, description="Minutes it may take."),
        "context": Property(kind="map", update_allowed=True, schema=_CONTEXT, description="Which Heat, and how."),
    }
    attributes = {"stack_name": "The stack's name.", "outputs": "Its outputs, by name."}
    acts_for_owner = True
    actions = (Action.SUSPEND, Action.RESUME, Action.CHECK)

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return _task(context, resource, Action.CREATE, properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Update the stack. Raises Replace if the region changes, because the new region needs a new stack."""
        before, after = (
            (values.get("context") or {}).get("region_name") for values in (resource.properties, properties)
        )
        if before != after or resource.physical_id is None:
            raise Replace(resource.name)
        return _task(context, resource, Action.UPDATE, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        """Delete the stack, also if it may exist although no response confirmed its creation."""
        return _task(context, resource, Action.DELETE, resource.properties) if resource.data.get("name") else DONE

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        return _task(context, resource, action, resource.properties) if resource.physical_id else DONE

    def check(self, context: Context, resource: Resource) -> Outcome:
        return Outcome(resource.data.get("ended") == (resource.data.get("wanted") or {}).get("task"))

    def cancel(self, context: Context, resource: Resource) -> None:
        context.env.work.cancel(context.tx, REMOTE, resource.id)

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        match name:
            case "stack_name":
                return select(resource.data.get("name"), path)
            case "outputs":
                return select(resource.data.get("outputs") or {}, path)
            case _:
                raise NoSuchAttribute(name)

    def validate(self, properties: Properties) -> None:
        remote = properties["context"]
        if not isinstance(remote, Mapping):
            return
        for name in ("credential_secret_id", "ca_cert", "insecure"):
            if remote.get(name) not in (None, False, UNKNOWN):
                raise StackValidationFailed(f"context.{name}: {_CONTEXT[name].description}")
