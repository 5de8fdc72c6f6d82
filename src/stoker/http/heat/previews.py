"""Previews of requests: /v1/{project}/stacks/preview and …/stacks/{name}/{id}/preview."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.http import params
from stoker.http.heat import serializers, stack_lookup, stack_requests, warnings
from stoker.http.request_context import RequestContext, Response
from stoker.model.stack import Stack
from stoker.stacks import operations
from stoker.stacks.queries.outputs import names as output_names
from stoker.stacks.templates import preview
from stoker.stacks.templates.outline import OutlinedResource
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare
from stoker.stacks.templates.preview import Change, Kind
from stoker.stacks.templates.preview_nested import all_changes
from stoker.store import stacks
from stoker.store.tx import Tx

#: The id that Heat shows for objects that do not exist.
_NO_ID = "None"


def create(request: RequestContext) -> Response:
    """Return the stack that a create request would produce."""
    body = stack_requests.body(request)
    name = stack_requests.name(body.get("stack_name"))
    resolved = prepare(
        request.app.engine,
        stack_requests.stack_request(body),
        Identity(_NO_ID, name, request.project),
        every_member=True,
    )
    options = stack_requests.options(body)
    with request.app.store.read() as tx:
        stack = operations.new_stack(
            tx,
            resolved,
            options,
            stack_id=_NO_ID,
            name=name,
            project_id=request.project,
            username=request.user.user_name,
        )
        operations.refuse_deployments(tx, request.app.engine, stack, resolved, resolved.planned_deployments)
        stacks.learn_hidden(tx, stack)
    redact = tx.secrets.redact
    values = {name: redact(preview.without_unknown(value)) for name, value in resolved.outputs.items()}
    outputs = [{**each, "output_value": values.get(each["output_key"])} for each in output_names(stack)]
    shown = serializers.stack(stack, stack_lookup.links(request), outputs)
    for left_out in ("stack_status", "stack_status_reason"):
        shown.pop(left_out, None)
    shown["resources"] = _serialize_outline(tx, resolved.outline, name, request.project)
    return Response(200, {"stack": shown}, warnings.headers(resolved.warnings))


def _serialize_outline(
    tx: Tx, resources: Mapping[str, OutlinedResource], stack_name: str, project_id: str, parent: str | None = None
) -> list[Any]:
    """Serialize planned resources as Heat does: a nested stack becomes the list of its resources."""
    identity = {"tenant": project_id, "stack_name": stack_name, "stack_id": _NO_ID}
    required_by: dict[str, list[str]] = {}
    for name, each in resources.items():
        for required in each.definition.requires:
            required_by.setdefault(required, []).append(name)
    shown: list[Any] = []
    for name, each in resources.items():
        if each.inside is not None:
            shown.append(_serialize_outline(tx, each.inside.resources, f"{stack_name}-{name}", project_id, name))
            continue
        one = {
            "resource_name": name,
            "resource_type": each.definition.mapped_from or each.definition.type,
            "resource_action": "INIT",
            "resource_status": "COMPLETE",
            "resource_status_reason": "",
            "resource_identity": {**identity, "path": f"/resources/{name}"},
            "stack_identity": {**identity, "path": ""},
            "stack_name": stack_name,
            "physical_resource_id": "",
            "creation_time": None,
            "updated_time": None,
            "description": each.definition.description,
            "metadata": tx.secrets.redact(preview.without_unknown(each.metadata) or {}),
            "attributes": dict.fromkeys(each.type.attributes or ()),
            "required_by": sorted(required_by.get(name, ())),
            "properties": tx.secrets.redact(preview.without_unknown(each.properties)),
        }
        shown.append(one if parent is None else {**one, "parent_resource": parent})
    return shown


def replace_it(request: RequestContext) -> Response:
    """Return the changes that a PUT of the stack would make."""
    return _changes(request, *stack_requests.for_replacement(request, stack_requests.body(request))[:2])


def change(request: RequestContext) -> Response:
    """Return the changes that a PATCH of the stack would make."""
    return _changes(request, *stack_requests.for_patch(request, stack_requests.body(request))[:2])


def _changes(request: RequestContext, stack: Stack, resolved: ResolvedStack) -> Response:
    nested = params.flag(request.query.get("show_nested"), "show_nested")
    engine = request.app.engine
    with request.app.store.read() as tx:
        now = stacks.get(tx, stack.id)
        operations.refuse_update(now)
        if nested:
            found = list(all_changes(tx, engine, now, resolved))
        else:
            found = [(now, each) for each in preview.changes(tx, engine, now, resolved)]
        listed: dict[str, list[dict[str, Any]]] = {kind.value: [] for kind in Kind}
        for inside, each in found:
            listed[each.kind.value].append(_resource(tx, each, inside))
    return Response(200, {"resource_changes": listed}, warnings.headers(resolved.warnings))


def _resource(tx: Tx, change: Change, stack: Stack) -> dict[str, Any]:
    """Serialize a changed resource as Heat's engine does, and add the changed properties."""
    now = change.resource
    identity = {"tenant": stack.project_id, "stack_name": stack.name, "stack_id": stack.id}
    return {
        "resource_name": change.name,
        "resource_type": change.definition.get("mapped_from") or change.type,
        "resource_action": now.action.value if now else "INIT",
        "resource_status": now.status.value if now else "COMPLETE",
        "resource_status_reason": now.reason if now else "",
        "resource_identity": {**identity, "path": f"/resources/{change.name}"},
        "stack_identity": {**identity, "path": ""},
        "stack_name": stack.name,
        "physical_resource_id": now.physical_id if now else None,
        "creation_time": serializers.time(now.created_at) if now else None,
        "updated_time": serializers.time(now.updated_at or now.created_at) if now else None,
        "description": change.definition.get("description") or "",
        "metadata": tx.secrets.redact(dict(change.definition.get("metadata") or {})),
        "attributes": {},
        "required_by": [],
        "properties": tx.secrets.redact(change.properties),
        "changed_properties": list(change.differing),
    }
