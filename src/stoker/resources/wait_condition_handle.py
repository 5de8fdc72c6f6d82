"""OS::Heat::WaitConditionHandle: where somebody outside says that something has happened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.resources.base import DONE, Context, NoSuchAttribute, Outcome, Properties, ResourceType, Signalled, party_of
from stoker.resources.properties import Property
from stoker.resources.waiting import FAILURE, SUCCESS, kept, party_of_handle, waiters
from stoker.transports.base import Lodging, Party, Place, Signalling
from stoker.transports.temp_url_signal import signal_place

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


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    party = party_of(context, resource)
    if properties.get("signal_transport") == TEMP_URL:
        context.services.site.objects.open(context.tx, party, _place(party), context.stack_id)
    elif isinstance(transport := _transport(context, properties), Lodging):
        transport.open(context.tx, context.services.site, party)
    return Outcome(physical_id=resource.id)


def delete(context: Context, resource: Resource) -> Outcome:
    party = party_of(context, resource)
    if resource.properties.get("signal_transport") == TEMP_URL:
        context.services.site.objects.close(context.tx, party, _place(party))
    elif isinstance(transport := _transport(context, resource.properties), Lodging):
        transport.close(context.tx, context.services.site, party)
    return DONE


def listen(context: Context, id: str, until: datetime) -> None:
    """Signals are waited for, until then, wherever the handle has them left; most ways bring them by themselves."""
    site, party = context.services.site, party_of_handle(context, id)
    site.objects.expect(context.tx, party, _place(party), until)
    site.queues.expect(context.tx, party, until)


def _place(party: Party) -> Place:
    """Each signal counts, also one that the next is put over."""
    return signal_place(party, versions=True)


def _transport(context: Context, properties: Properties) -> Signalling | None:
    return context.services.transports.signalling.get(properties.get("signal_transport") or "")


def update(_context: Context, _resource: Resource, _properties: Properties) -> Outcome:
    return DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name not in _ATTRIBUTES:
        raise NoSuchAttribute(name)
    transport = resource.properties.get("signal_transport")
    if name == "signal":
        return _details(context, resource, transport)
    if transport != TOKEN_SIGNAL:
        return None
    endpoint = _endpoint(context, resource)
    token = context.services.signal_tokens.token(resource.id)
    if name == "endpoint":
        return endpoint
    if name == "token":
        return token
    return (
        f"curl -i -X POST -H 'X-Auth-Token: {token}' -H 'Content-Type: application/json' "
        f"-H 'Accept: application/json' {endpoint}"
    )


def _details(context: Context, resource: Resource, transport: Any) -> str | None:
    """How to signal it, in JSON; with TOKEN_SIGNAL the other attributes say it."""
    site, party = context.services.site, party_of(context, resource)
    match transport:
        case "CFN_SIGNAL":
            said = {"alarm_url": site.signed_url(party, "waitcondition", "PUT")}
        case "HEAT_SIGNAL":
            said = {**_login(context, resource), "alarm_url": _endpoint(context, resource)}
        case "TEMP_URL_SIGNAL":
            said = {"alarm_url": site.objects.url(party, _place(party), "PUT")}
        case "ZAQAR_SIGNAL":
            said = {**_login(context, resource), "queue_id": resource.id}
        case "NO_SIGNAL":
            said = {}
        case _:
            return None
    return json.dumps(said)


def _login(context: Context, resource: Resource) -> dict[str, Any]:
    site = context.services.site
    login = site.login(party_of(context, resource))
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
    stack = f"{context.services.site.public_url}/v1/{context.project_id}/stacks/{context.stack_name}"
    return f"{stack}/{context.stack_id}/resources/{quote(resource.name, safe='')}/signal"


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
    changed = replace(resource, metadata=kept(resource, id, status, reason, details.get("data")))
    return Signalled(f"status:{status} reason:{reason}", changed)


def waiting_for(context: Context, resource: Resource) -> Iterable[str]:
    return waiters(context, WAIT_CONDITION, "handle", resource.physical_id)


TYPE = ResourceType(
    name="OS::Heat::WaitConditionHandle",
    properties={
        "signal_transport": Property(
            kind="string",
            default=TOKEN_SIGNAL,
            allowed=(TOKEN_SIGNAL, "CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "NO_SIGNAL"),
            description="How it is signalled.",
        )
    },
    attributes=_ATTRIBUTES,
    create=create,
    update=update,
    delete=delete,
    attribute=attribute,
    signal=signal,
    waiters=waiting_for,
    agents_transport="signal_transport",
    description="Takes signals for wait conditions.",
)
