"""OS::Heat::WaitConditionHandle: where somebody outside says that something has happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.resources.base import DONE, Context, NoSuchAttribute, Outcome, Properties, ResourceType, Signalled
from stoker.resources.properties import Property
from stoker.store import resources

WAIT_CONDITION = "OS::Heat::WaitCondition"
SUCCESS, FAILURE = "SUCCESS", "FAILURE"
_ATTRIBUTES = {
    "token": "What to send as X-Auth-Token with a signal.",
    "endpoint": "Where to send it.",
    "curl_cli": "A command that does.",
    "signal": "What other transports need, in JSON.",
}
_KEYS = ("status", "reason", "data", "id")


def create(_context: Context, resource: Resource, _properties: Properties) -> Outcome:
    return Outcome(physical_id=resource.id)


def update(_context: Context, _resource: Resource, _properties: Properties) -> Outcome:
    return DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name not in _ATTRIBUTES:
        raise NoSuchAttribute(name)
    if resource.properties.get("signal_transport") == "NO_SIGNAL":
        return "{}" if name == "signal" else None
    if name == "signal":
        return None  # the other three say it
    endpoint = (
        f"{context.services.public_url}/v1/{context.project_id}/stacks/{context.stack_name}/{context.stack_id}"
        f"/resources/{quote(resource.name, safe='')}/signal"
    )
    token = context.services.signal_tokens.token(resource.id)
    if name == "endpoint":
        return endpoint
    if name == "token":
        return token
    return (
        f"curl -i -X POST -H 'X-Auth-Token: {token}' -H 'Content-Type: application/json' "
        f"-H 'Accept: application/json' {endpoint}"
    )


def signal(_context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
    """Raises Invalid for what is no signal; Heat answers first and drops it later."""
    unknown = sorted(set(details) - set(_KEYS))
    if unknown:
        raise Invalid(f"a signal to {resource.name} has {', '.join(_KEYS)}, all optional, not {', '.join(unknown)}")
    status = details.get("status", SUCCESS)
    if status not in (SUCCESS, FAILURE):
        raise Invalid(f"a signal's status is {SUCCESS} or {FAILURE}, not {status!r}")
    number = len(resource.metadata) + 1
    id = str(details.get("id", number))
    reason = str(details.get("reason", f"Signal {number} received"))
    said = {"status": status, "reason": reason, "data": details.get("data")}
    changed = replace(resource, metadata={**resource.metadata, id: said})
    return Signalled(f"status:{status} reason:{reason}", changed)


def waiters(context: Context, resource: Resource) -> Iterable[str]:
    """The wait conditions of the stack that wait for it."""
    for each in resources.in_progress(context.tx, context.stack_id):
        if each.type == WAIT_CONDITION and each.properties.get("handle") == resource.physical_id:
            yield each.id


TYPE = ResourceType(
    name="OS::Heat::WaitConditionHandle",
    properties={
        "signal_transport": Property(
            kind="string",
            default="TOKEN_SIGNAL",
            allowed=("TOKEN_SIGNAL", "NO_SIGNAL"),
            description="How it is signalled.",
        )
    },
    attributes=_ATTRIBUTES,
    create=create,
    update=update,
    attribute=attribute,
    signal=signal,
    waiters=waiters,
    description="Takes signals for wait conditions.",
)
