"""OS::Heat::Delay: waits for a time, so that dependent resources start later."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import DONE, LONGEST_WAIT, Context, Outcome, Properties, ResourceType, wake_at
from stoker.resources.properties import Property


def _wait(context: Context, resource: Resource, properties: Properties, action: Action) -> Outcome:
    if not properties or action not in properties["actions"]:  # no properties: the resource was never created
        return DONE
    jitter = random.uniform(0, properties["max_jitter"] * properties["jitter_multiplier"])  # noqa: S311 — no secret
    until = context.tx.now + timedelta(seconds=properties["min_wait"] + jitter)
    if until <= context.tx.now:
        return DONE
    wake_at(context, resource, until)
    return Outcome(False, data={"until": until.isoformat()})


def _number(description: str, default: float) -> Property:
    return Property(
        kind="number",
        minimum=0,
        maximum=LONGEST_WAIT,
        default=default,
        update_allowed=True,
        description=description,
    )


class Delay(ResourceType):
    name = "OS::Heat::Delay"
    description = "Waits for a time."
    properties = {
        "min_wait": _number("Seconds at least.", default=0),
        "max_jitter": _number("Seconds more.", default=0),
        "jitter_multiplier": _number("Multiplies the jitter.", default=1.0),
        "actions": Property(
            kind="list",
            each=Property(kind="string", allowed=("CREATE", "DELETE", "SUSPEND", "RESUME")),
            default=["CREATE"],
            update_allowed=True,
            description="The actions that wait.",
        ),
    }
    actions = (Action.SUSPEND, Action.RESUME)

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return _wait(context, resource, properties, Action.CREATE)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return DONE

    def delete(self, context: Context, resource: Resource) -> Outcome:
        return _wait(context, resource, resource.properties, Action.DELETE)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        return _wait(context, resource, resource.properties, action)

    def check(self, context: Context, resource: Resource) -> Outcome:
        until = resource.data.get("until")
        return Outcome(until is None or context.tx.now >= datetime.fromisoformat(until))

    def validate(self, properties: Properties) -> None:
        least, jitter, multiplier = (properties[name] for name in ("min_wait", "max_jitter", "jitter_multiplier"))
        if UNKNOWN not in (least, jitter, multiplier) and least + jitter * multiplier > LONGEST_WAIT:
            raise StackValidationFailed(f"min_wait and max_jitter: it may wait no longer than {LONGEST_WAIT} seconds")
