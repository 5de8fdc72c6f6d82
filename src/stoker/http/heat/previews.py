"""What a request would do: /v1/{project}/stacks/preview and …/stacks/{name}/{id}/preview."""

from __future__ import annotations

from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import finding, handing, shapes
from stoker.model.stack import Stack
from stoker.stacks import operations, preview
from stoker.stacks.prepare import Prepared
from stoker.stacks.preview import Change, Kind
from stoker.stacks.preview_nested import all_changes
from stoker.store import stacks


def create(call: Call) -> Reply:
    body = reading.body(call)
    name = handing.name(body.get("stack_name"))
    identity, prepared = handing.new(call, body, name)
    options = handing.options(body)

    with call.services.store.read() as tx:
        stack = operations.new_stack(
            tx,
            prepared,
            options,
            stack_id=identity.stack_id,
            name=name,
            project_id=call.project,
            username=call.user.user_name,
        )
        operations.refuse_deployments(tx, call.services.engine, stack, prepared, prepared.deploys)
        found = preview.changes(tx, call.services.engine, stack, prepared)
    shown = shapes.stack(stack, finding.links(call), None)
    for left_out in ("stack_status", "stack_status_reason", "outputs"):
        shown.pop(left_out, None)
    return Reply(200, {"stack": {**shown, "resources": [_resource(each, stack) for each in found]}})


def replace_it(call: Call) -> Reply:
    return _changes(call, *handing.replacing(call, reading.body(call))[:2])


def change(call: Call) -> Reply:
    return _changes(call, *handing.changing(call, reading.body(call))[:2])


def _changes(call: Call, stack: Stack, prepared: Prepared) -> Reply:
    nested = reading.flag(call.query.get("show_nested"), "show_nested")
    engine = call.services.engine
    with call.services.store.read() as tx:
        now = stacks.get(tx, stack.id)
        operations.refuse_update(now)
        if nested:
            found = list(all_changes(tx, engine, now, prepared))
        else:
            found = [(now, each) for each in preview.changes(tx, engine, now, prepared)]
    listed: dict[str, list[dict[str, Any]]] = {kind.value: [] for kind in Kind}
    for inside, each in found:
        listed[each.kind.value].append(_resource(each, inside))
    return Reply(200, {"resource_changes": listed})


def _resource(change: Change, stack: Stack) -> dict[str, Any]:
    """As Heat's engine says it, with what differs added."""
    now = change.resource
    identity = {"tenant": stack.project_id, "stack_name": stack.name, "stack_id": stack.id}
    return {
        "resource_name": change.name,
        "resource_type": change.type,
        "resource_action": now.action.value if now else "INIT",
        "resource_status": now.status.value if now else "COMPLETE",
        "resource_status_reason": now.reason if now else "",
        "resource_identity": {**identity, "path": f"/resources/{change.name}"},
        "stack_identity": {**identity, "path": ""},
        "stack_name": stack.name,
        "physical_resource_id": now.physical_id if now else None,
        "creation_time": shapes.time(now.created_at) if now else None,
        "updated_time": shapes.time(now.updated_at or now.created_at) if now else None,
        "description": change.definition.get("description") or "",
        "metadata": dict(change.definition.get("metadata") or {}),
        "attributes": {},
        "required_by": [],
        "properties": change.properties,
        "changed_properties": list(change.differing),
    }
