"""Labels of a server, and the policy of who may deploy to the server, as templates set them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from stoker import hot
from stoker.deployments import server_runs
from stoker.model.errors import Invalid, StackValidationFailed
from stoker.model.server import Kind, Server, check_labels
from stoker.model.stack import Resource
from stoker.policy import rules
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker.store import servers, stacks

LABELS, POLICY = "labels", rules.NAME
#: Key of the resource's data for the labels and policy that it set, and the values before.
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
    """Validate labels and policy as far as they are known. Raises StackValidationFailed."""
    values = {name: properties.get(name) for name in (LABELS, POLICY)}
    try:
        if values[LABELS] is not None and not hot.has_unknown(values[LABELS]):
            check_labels(values[LABELS])
        if values[POLICY] is not None and not hot.has_unknown(values[POLICY]):
            rules.read(values[POLICY])
    except Invalid as error:
        raise StackValidationFailed(error.message) from None


def apply(context: Context, resource: Resource, properties: Properties, server_id: str) -> Mapping[str, Any]:
    """
    Set the server's labels and policy, and restore values that the template no longer sets.

    Returns the entries for the resource's data.
    """
    server = servers.find(context.tx, server_id, for_update=True)  # labels are stored as a whole
    if server is None:
        return {}
    wanted = properties.get(LABELS)
    policy = None
    if (value := properties.get(POLICY)) is not None:
        find_project = partial(context.env.find_project, context.tx)
        policy = rules.with_project_ids(rules.read(value), find_project).to_json()
    kept = {
        LABELS: _label(context, server, resource, None if wanted is None else check_labels(wanted)),
        POLICY: _govern(context, server, resource, policy),
    }
    return {_KEPT: kept} if any(kept.values()) else {}


def without(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's data without this module's entry."""
    return {name: value for name, value in data.items() if name != _KEPT}


def represent(context: Context, resource: Resource, server_id: str) -> None:
    """
    Record that this resource represents the server if it is enrolled, so that the stack counts as the server's own.
    """
    server = servers.find(context.tx, server_id, for_update=True)
    if server is None or server.kind is not Kind.ENROLLED:
        return
    if server.stands_for.get(resource.id) != context.stack.root_id:
        others = _others(context, server, resource)
        servers.change(context.tx, server_id, stands_for={**others, resource.id: context.stack.root_id})


def end(context: Context, resource: Resource, server_id: str) -> None:
    """
    Release a server that outlives the resource.

    If another resource represents the server too, labels and policy remain.
    """
    server = servers.find(context.tx, server_id, for_update=True)
    if server is None or server.kind is not Kind.ENROLLED:
        return
    others = _others(context, server, resource)
    servers.change(context.tx, server_id, stands_for=others)
    if not others:
        _label(context, server, resource, None)
        _govern(context, server, resource, None)


def _others(context: Context, server: Server, resource: Resource) -> dict[str, str]:
    """Return the other resources that represent the server, without resources of stacks that no longer exist."""
    roots = {id: stacks.find(context.tx, top) for id, top in server.stands_for.items() if id != resource.id}
    return {id: top.id for id, top in roots.items() if top is not None and top.deleted_at is None}


def _label(
    context: Context, server: Server, resource: Resource, wanted: Mapping[str, str] | None
) -> Mapping[str, Any] | None:
    kept = resource.data.get(_KEPT, {}).get(LABELS) or {"set": {}, "before": {}}
    now = dict(server.labels)
    for name, value in kept["set"].items():
        if now.get(name) == value:  # otherwise, another client changed the label since
            now.pop(name)
            now |= {name: kept["before"][name]} if name in kept["before"] else {}
    before = {name: now[name] for name in wanted or () if name in now}
    now |= wanted or {}
    if now != server.labels:
        servers.change(context.tx, server.id, labels=now)
    return {"set": dict(wanted), "before": before} if wanted else None


def _govern(
    context: Context, server: Server, resource: Resource, wanted: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    kept = resource.data.get(_KEPT, {}).get(POLICY)
    before = server.policy
    if kept is not None:
        # The value before this resource first set a policy, unless another client changed the policy since.
        before = kept["before"] if server.policy == kept["set"] else server.policy
    now = before if wanted is None else wanted
    if now != server.policy:
        servers.change(context.tx, server.id, policy=now)
        server_runs.reevaluate(context.tx, context.env.work, server.id)
    return None if wanted is None else {"set": wanted, "before": before}
