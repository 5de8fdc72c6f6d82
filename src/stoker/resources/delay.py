"""OS::Heat::Delay: waits, so that what builds on it begins later."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import DONE, Context, Outcome, Properties, ResourceType, wake_at
from stoker.resources.properties import Property


def _wait(context: Context, resource: Resource, properties: Properties, action: Action) -> Outcome:
    if action not in properties["actions"]:
        return DONE
    jitter = random.uniform(0, properties["max_jitter"] * properties["jitter_multiplier"])  # noqa: S311 — no secret
    until = context.tx.now + timedelta(seconds=properties["min_wait"] + jitter)
    if until <= context.tx.now:
        return DONE
    wake_at(context, resource, until)
    return Outcome(False, data={"until": until.isoformat()})


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return _wait(context, resource, properties, Action.CREATE)


def update(_context: Context, _resource: Resource, _properties: Properties) -> Outcome:
    return DONE


def delete(context: Context, resource: Resource) -> Outcome:
    return _wait(context, resource, resource.properties, Action.DELETE) if resource.properties else DONE


def check(context: Context, resource: Resource) -> Outcome:
    until = resource.data.get("until")
    return Outcome(until is None or context.tx.now >= datetime.fromisoformat(until))


def _visit(action: Action) -> Callable[[Context, Resource], Outcome]:
    return lambda context, resource: _wait(context, resource, resource.properties, action)


TYPE = ResourceType(
    name="OS::Heat::Delay",
    properties={
        "min_wait": Property(kind="number", minimum=0, default=0, update_allowed=True, description="Seconds at least."),
        "max_jitter": Property(kind="number", minimum=0, default=0, update_allowed=True, description="Seconds more."),
        "jitter_multiplier": Property(
            kind="number",
            minimum=0,
            default=1.0,
            update_allowed=True,
            description="Multiplies the jitter.",
        ),
        "actions": Property(
            kind="list",
            each=Property(kind="string", allowed=("CREATE", "DELETE", "SUSPEND", "RESUME")),
            default=["CREATE"],
            update_allowed=True,
            description="The actions that wait.",
        ),
    },
    create=create,
    update=update,
    delete=delete,
    check=check,
    actions={action: _visit(action) for action in (Action.SUSPEND, Action.RESUME)},
    description="Waits for a time.",
)
