"""What templates say of a server besides what it runs: its labels, and the policy of who may deploy to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import hot
from stoker.deployments import policy, windows
from stoker.model import labels
from stoker.model.errors import Invalid, StackValidationFailed
from stoker.model.server import Kind, Server
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker.store import servers, stacks

LABELS, POLICY = "labels", policy.NAME
#: Where a resource's data keeps what it set on the server, and what was there before.
_KEPT = "governed"

PROPERTIES: Mapping[str, Property] = {
    LABELS: Property(
        kind="map",
        update_allowed=True,
        description="Names and values that triggers and groups find the server by (Stoker's own).",
    ),
    POLICY: Property(
        kind="any",
        update_allowed=True,
        description=(
            "Who may deploy to the server, what and when: STACK, PROJECT, a list of stacks and projects, or a map of"
            " allow, groups, max_concurrent_runs and maintenance_windows (Stoker's own)."
        ),
    ),
}


def validate(properties: Properties) -> None:
    """Raises StackValidationFailed."""
    said = {name: properties.get(name) for name in (LABELS, POLICY)}
    try:
        if said[LABELS] is not None and not _has_unknown(said[LABELS]):
            labels.checked(said[LABELS])
        if said[POLICY] is not None and not _has_unknown(said[POLICY]):
            policy.read(said[POLICY])
    except Invalid as error:
        raise StackValidationFailed(error.message) from None


def apply(context: Context, resource: Resource, properties: Properties, server_id: str) -> Mapping[str, Any]:
    """Have the server be as the template says; what it no longer says is as it was before. Returns the data to keep."""
    server = servers.find(context.tx, server_id, hold=True)  # labels are written as a whole
    if server is None:
        return {}
    wanted = properties.get(LABELS)
    said = properties.get(POLICY)
    kept = {
        LABELS: _label(context, server, resource, None if wanted is None else labels.checked(wanted)),
        POLICY: _govern(context, server, resource, None if said is None else policy.read(said).to_json()),
    }
    return {_KEPT: kept} if any(kept.values()) else {}


def without(data: Mapping[str, Any]) -> dict[str, Any]:
    """A resource's data but for what is kept here."""
    return {name: value for name, value in data.items() if name != _KEPT}


def stand_for(context: Context, resource: Resource, server_id: str) -> None:
    """The stack is one of an enrolled server's own from now on."""
    server = servers.find(context.tx, server_id, hold=True)
    stack = stacks.find(context.tx, context.stack_id)
    if server is not None and stack is not None:
        others = _others(context, server, resource)
        servers.set_stands_for(context.tx, server_id, {**others, resource.id: stack.root_id})


def end(context: Context, resource: Resource, server_id: str) -> None:
    """The resource goes and the server stays. Where another resource stands for it too, that one's word holds."""
    server = servers.find(context.tx, server_id, hold=True)
    if server is None or server.kind is not Kind.ENROLLED:
        return
    others = _others(context, server, resource)
    servers.set_stands_for(context.tx, server_id, others)
    if not others:
        _label(context, server, resource, None)
        _govern(context, server, resource, None)


def _others(context: Context, server: Server, resource: Resource) -> dict[str, str]:
    """The other resources that stand for it; a stack that was abandoned left its own behind."""
    found = {id: stacks.find(context.tx, top) for id, top in server.stands_for.items() if id != resource.id}
    return {id: top.id for id, top in found.items() if top is not None and top.deleted_at is None}


def _label(
    context: Context, server: Server, resource: Resource, wanted: Mapping[str, str] | None
) -> Mapping[str, Any] | None:
    kept = resource.data.get(_KEPT, {}).get(LABELS) or {"set": {}, "before": {}}
    now = dict(server.labels)
    for name, value in kept["set"].items():
        if now.get(name) == value:  # else somebody said otherwise meanwhile
            now.pop(name)
            now |= {name: kept["before"][name]} if name in kept["before"] else {}
    before = {name: now[name] for name in wanted or () if name in now}
    now |= wanted or {}
    if now != server.labels:
        servers.set_labels(context.tx, server.id, now)
    return {"set": dict(wanted), "before": before} if wanted else None


def _govern(
    context: Context, server: Server, resource: Resource, wanted: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    kept = resource.data.get(_KEPT, {}).get(POLICY)
    before = server.policy
    if kept is not None:
        # What was there before the first of this resource's; unless somebody said otherwise meanwhile.
        before = kept["before"] if server.policy == kept["set"] else server.policy
    now = before if wanted is None else wanted
    if now != server.policy:
        servers.set_policy(context.tx, server.id, now)
        windows.reconsider(context.tx, context.services.work, server.id)
    return None if wanted is None else {"set": wanted, "before": before}


def _has_unknown(value: Any) -> bool:
    return hot.weigh(value)[1]
