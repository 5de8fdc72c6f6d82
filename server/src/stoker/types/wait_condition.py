"""OS::Heat::WaitCondition and its handle: waits for signals to the handle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceType,
    Signalled,
    TakesSignals,
    target_of,
)
from stoker.resources.properties import Property
from stoker.store import resources
from stoker.transports.base import NeedsProvisioning, ObjectRef, SignalTransport, TransportTarget
from stoker.transports.temp_url_signal import signal_place
from stoker.types.wait_base import FAILURE, SUCCESS, WaitType, record_signal, target_of_handle, waiters

WAIT_CONDITION = "OS::Heat::WaitCondition"
_ATTRIBUTES = {
    "token": "What to send as X-Auth-Token with a signal.",
    "endpoint": "Where to send it.",
    "curl_cli": "A command that does.",
    "signal": "What other transports need, in JSON.",
}
TOKEN_SIGNAL = "TOKEN_SIGNAL"  # noqa: S105 - the name of a transport
TEMP_URL = "TEMP_URL_SIGNAL"
_KEYS = ("status", "reason", "data", "id")


def _place(target: TransportTarget) -> ObjectRef:
    """Return the object for signals. Every version counts, because a signal may overwrite the previous one."""
    return signal_place(target, versions=True)


def _transport(context: Context, properties: Properties) -> SignalTransport | None:
    return context.env.transports.signal_transports.get(properties.get("signal_transport") or "")


def _details(context: Context, resource: Resource, transport: Any) -> str | None:
    """Return the ``signal`` attribute as JSON; None for TOKEN_SIGNAL, which uses the other attributes."""
    site, target = context.env.platform, target_of(context, resource)
    match transport:
        case "CFN_SIGNAL":
            details = {"alarm_url": site.signed_url(target, "waitcondition", "PUT")}
        case "HEAT_SIGNAL":
            details = {**_login(context, resource), "alarm_url": _endpoint(context, resource)}
        case "TEMP_URL_SIGNAL":
            details = {"alarm_url": site.objects.url(target, _place(target), "PUT")}
        case "ZAQAR_SIGNAL":
            details = {**_login(context, resource), "queue_id": resource.id}
        case "NO_SIGNAL":
            details = {}
        case _:
            return None
    return json.dumps(details)


def _login(context: Context, resource: Resource) -> dict[str, Any]:
    site = context.env.platform
    login = site.login(target_of(context, resource))
    return {
        "auth_url": site.auth_url,
        "username": login.username,
        "user_id": login.user_id,
        "password": login.password,
        "project_id": login.project_id,
        "domain_id": login.domain_id,
        "region_name": site.region,
    }


def _endpoint(context: Context, resource: Resource) -> str:
    stack = f"{context.env.platform.public_url}/v1/{context.project_id}/stacks/{context.stack_name}"
    return f"{stack}/{context.stack_id}/resources/{quote(resource.name, safe='')}/signal"


def signal(resource: Resource, details: Mapping[str, Any]) -> Signalled:
    """Record a signal. Raises Invalid for an invalid signal, which Heat accepts and discards later."""
    unknown = sorted(set(details) - set(_KEYS))
    if unknown:
        raise Invalid(f"a signal to {resource.name} has {', '.join(_KEYS)}, all optional, not {', '.join(unknown)}")
    status = details.get("status", SUCCESS)
    if status not in (SUCCESS, FAILURE):
        raise Invalid(f"a signal's status is {SUCCESS} or {FAILURE}, not {status!r}")
    number = len(resource.metadata) + 1
    id = str(details.get("id", number))
    reason = str(details.get("reason", f"Signal {number} received"))
    changed = replace(resource, metadata=record_signal(resource, id, status, reason, details.get("data")))
    return Signalled(f"status:{status} reason:{reason}", changed)


class WaitConditionHandle(TakesSignals, ResourceType):
    name = "OS::Heat::WaitConditionHandle"
    description = "Takes signals for wait conditions."
    properties = {
        "signal_transport": Property(
            kind="string",
            default=TOKEN_SIGNAL,
            allowed=(TOKEN_SIGNAL, "CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "NO_SIGNAL"),
            description="How it is signalled.",
        )
    }
    attributes = _ATTRIBUTES
    agents_transport = "signal_transport"

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        target = target_of(context, resource)
        if properties.get("signal_transport") == TEMP_URL:
            context.env.platform.objects.open(context.tx, target, _place(target), context.stack_id)
        elif isinstance(transport := _transport(context, properties), NeedsProvisioning):
            transport.open(context.tx, context.env.platform, target)
        return Outcome(physical_id=resource.id)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return DONE

    def delete(self, context: Context, resource: Resource) -> Outcome:
        self.retain(context, resource)
        return DONE

    def retain(self, context: Context, resource: Resource) -> None:
        """Delete the object or queue for the signals. Only Stoker may delete it."""
        target = target_of(context, resource)
        if resource.properties.get("signal_transport") == TEMP_URL:
            context.env.platform.objects.close(context.tx, target, _place(target))
        elif isinstance(transport := _transport(context, resource.properties), NeedsProvisioning):
            transport.close(context.tx, context.env.platform, target)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise NoSuchAttribute(name)
        transport = resource.properties.get("signal_transport")
        if name == "signal":
            return _details(context, resource, transport)
        if transport != TOKEN_SIGNAL:
            return None
        endpoint = _endpoint(context, resource)
        token = context.env.signal_tokens.token(resource.id)
        if name == "endpoint":
            return endpoint
        if name == "token":
            return token
        return (
            f"curl -i -X POST -H 'X-Auth-Token: {token}' -H 'Content-Type: application/json' "
            f"-H 'Accept: application/json' {endpoint}"
        )

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
        return signal(resource, details)

    def waiters(self, context: Context, resource: Resource) -> Iterable[str]:
        return waiters(context, WAIT_CONDITION, "handle", resource.physical_id)


class WaitCondition(WaitType):
    name = WAIT_CONDITION

    def find_handle(self, context: Context, reference: str) -> Resource | None:
        return resources.with_physical_id(context.tx, context.stack_id, reference)

    def listen(self, context: Context, reference: str, until: datetime) -> None:
        """Expect signals in the handle's object and queue. Embedded services deliver signals without this request."""
        site, target = context.env.platform, target_of_handle(context, reference)
        site.objects.await_result(context.tx, target, _place(target), until)
        site.queues.await_result(context.tx, target, until)
