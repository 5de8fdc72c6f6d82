"""Previews of requests: /v1/{project}/stacks/preview, …/stacks/server_previews and …/stacks/{name}/{id}/preview."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.contracts import operation
from stoker.http.fields import Absent, Answer, Flag, Id, Query, fill
from stoker.http.heat import serializers, stack_lookup, stack_requests, template_types, warnings
from stoker.http.heat.cloud_constraints import open_constraints
from stoker.http.heat.stack_requests import PreviewBody, StackPatch, StackReplacement
from stoker.http.heat.stack_types import (
    NewResource,
    PreviewedStack,
    ResourceChange,
    ResourceChanges,
    ResourceIdentity,
)
from stoker.http.heat.stacks import UPDATE_EXAMPLE
from stoker.http.request_context import RequestContext, Response
from stoker.model.stack import Stack
from stoker.model.status import Action, Status
from stoker.stacks import hook_precheck, operations
from stoker.stacks.queries.outputs import names as output_names
from stoker.stacks.templates import preview
from stoker.stacks.templates.outline import OutlinedResource
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare
from stoker.stacks.templates.preview import Change, Kind
from stoker.stacks.templates.preview_nested import all_changes
from stoker.store import stacks
from stoker.store.tx import Tx
from stoker.triggers.update_previews import start_previews

#: The id that Heat shows for objects that do not exist.
_NO_ID = "None"


class ServerPreview(Answer):
    """The preview of a deployment on its servers."""

    resource_name: Annotated[str, Meta(description="In a nested stack or group: all names from the outermost stack on")]
    action: str
    trigger_id: Annotated[Id | None, Meta(description="The trigger whose runs show what would change")]
    reason: Annotated[str | None, Meta(description="Why there is no trigger")]


class ChangesAnswer(Answer):
    resource_changes: ResourceChanges
    server_previews: list[ServerPreview] | Absent = UNSET


class ServerPreviewsAnswer(Answer):
    server_previews: list[ServerPreview]


class PreviewQuery(Query):
    show_nested: Flag = False
    on_servers: Annotated[
        Flag, Meta(description="Whether triggers with the mode PREVIEW show what the deployments would change")
    ] = False


@operation(
    200,
    {"stack": PreviewedStack},
    errors=(409,),
    example={"stack_name": "previewed", "template": template_types.EXAMPLE, "parameters": {"length": 8}},
)
def create(request: RequestContext, body: PreviewBody) -> Response:
    """Return the stack that a create request would produce."""
    name, resolved = _prepare_new(request, body, every_member=True)
    with request.app.store.read() as tx:
        stack = _plan_new(tx, request, body, name, resolved)
        missing = hook_precheck.list_missing_programs(tx, resolved.planned_deployments, request.project)
    redact = tx.secrets.redact
    values = {name: redact(preview.without_unknown(value)) for name, value in resolved.outputs.items()}
    shown = fill(
        PreviewedStack,
        stack,
        **serializers.detail(stack, stack_lookup.links(request)),
        outputs=[{**output, "output_value": values.get(output["output_key"])} for output in output_names(stack)],
        resources=_serialize_outline(tx, resolved.outline, name, request.project),
    )
    return Response(200, {"stack": shown}, warnings.headers([*resolved.warnings, *missing]))


@operation(
    201,
    ServerPreviewsAnswer,
    errors=(409,),
    example={"stack_name": "previewed", "template": template_types.EXAMPLE, "parameters": {"length": 8}},
)
def create_on_servers(request: RequestContext, body: PreviewBody) -> Response:
    """Start triggers that show what the deployments of a new stack would change on servers that exist already."""
    name, resolved = _prepare_new(request, body)

    def do(tx: Tx) -> list[ServerPreview]:
        stack = _plan_new(tx, request, body, name, resolved)
        return _start_previews(tx, request, stack, resolved, exists=False)

    answer = ServerPreviewsAnswer(server_previews=request.app.store.write(do))
    return Response(201, answer, warnings.headers(resolved.warnings))


def _prepare_new(
    request: RequestContext, body: PreviewBody, *, every_member: bool = False
) -> tuple[str, ResolvedStack]:
    name = stack_requests.name(body.stack_name)
    identity = Identity(_NO_ID, name, request.project)
    new, constraints = body.stack_request(request), open_constraints(request)
    return name, prepare(request.app.engine, new, identity, every_member=every_member, constraints=constraints)


def _plan_new(tx: Tx, request: RequestContext, body: PreviewBody, name: str, resolved: ResolvedStack) -> Stack:
    """Return the row of the stack that a create request would write. Raises what would refuse its deployments."""
    stack = operations.new_stack(
        tx,
        resolved,
        body.options(),
        stack_id=_NO_ID,
        name=name,
        project_id=request.project,
        username=request.user.user_name,
    )
    operations.refuse_deployments(tx, request.app.engine, stack, resolved, resolved.planned_deployments)
    stacks.learn_hidden(tx, stack)
    return stack


def _serialize_outline(
    tx: Tx, resources: Mapping[str, OutlinedResource], stack_name: str, project_id: str, parent: str | None = None
) -> list[Any]:
    """Serialize planned resources as Heat does: a nested stack becomes the list of its resources."""
    required_by: dict[str, list[str]] = {}
    for name, resource in resources.items():
        for required in resource.definition.requires:
            required_by.setdefault(required, []).append(name)
    return [
        _serialize_outline(tx, resource.inside.resources, f"{stack_name}-{name}", project_id, name)
        if resource.inside is not None
        else NewResource(
            resource_name=name,
            resource_type=resource.definition.mapped_from or resource.definition.type,
            resource_action=Action.INIT,
            resource_status=Status.COMPLETE,
            resource_status_reason="",
            resource_identity=ResourceIdentity(project_id, stack_name, _NO_ID, f"/resources/{name}"),
            stack_identity=ResourceIdentity(project_id, stack_name, _NO_ID, ""),
            stack_name=stack_name,
            physical_resource_id="",
            creation_time=None,
            updated_time=None,
            description=resource.definition.description,
            metadata=tx.secrets.redact(preview.without_unknown(resource.metadata) or {}),
            attributes=dict.fromkeys(resource.type.attributes or ()),
            required_by=sorted(required_by.get(name, ())),
            properties=tx.secrets.redact(preview.without_unknown(resource.properties)),
            parent_resource=UNSET if parent is None else parent,
        )
        for name, resource in resources.items()
    ]


@operation(200, ChangesAnswer, errors=(409,), example=UPDATE_EXAMPLE)
def replace_it(request: RequestContext, body: StackReplacement, query: PreviewQuery) -> Response:
    """Return the changes that a PUT of the stack would make."""
    return _changes(request, *stack_requests.for_replacement(request, body)[:2], query)


@operation(200, ChangesAnswer, errors=(409,), example=UPDATE_EXAMPLE)
def change(request: RequestContext, body: StackPatch, query: PreviewQuery) -> Response:
    """Return the changes that a PATCH of the stack would make."""
    return _changes(request, *stack_requests.for_patch(request, body)[:2], query)


def _changes(request: RequestContext, stack: Stack, resolved: ResolvedStack, query: PreviewQuery) -> Response:
    engine = request.app.engine
    with request.app.store.read() as tx:
        current = stacks.get(tx, stack.id)
        operations.refuse_update(current)
        new = operations.refuse_update_deployments(tx, engine, current, resolved)
        missing = hook_precheck.list_missing_programs(tx, new, current.project_id)
        if query.show_nested:
            changes = list(all_changes(tx, engine, current, resolved))
        else:
            changes = [(current, change) for change in preview.changes(tx, engine, current, resolved)]
        listed: dict[str, list[ResourceChange]] = {kind.value: [] for kind in Kind}
        for inside, change in changes:
            listed[change.kind.value].append(_serialize_change(tx, change, inside))
    answer = ChangesAnswer(resource_changes=ResourceChanges(**listed))
    if query.on_servers:
        answer.server_previews = request.app.store.write(
            lambda tx: _start_previews(tx, request, stacks.get(tx, stack.id), resolved)
        )
    return Response(200, answer, warnings.headers([*resolved.warnings, *missing]))


def _start_previews(
    tx: Tx, request: RequestContext, stack: Stack, resolved: ResolvedStack, *, exists: bool = True
) -> list[ServerPreview]:
    previews = start_previews(tx, request.app.engine, stack, resolved, request.user.user_name, exists=exists)
    return [fill(ServerPreview, started) for started in previews]


def _serialize_change(tx: Tx, change: Change, stack: Stack) -> ResourceChange:
    """Serialize a changed resource as Heat's engine does, and add the changed properties."""
    resource = change.resource
    return ResourceChange(
        resource_name=change.name,
        resource_type=change.definition.get("mapped_from") or change.type,
        resource_action=resource.action if resource else Action.INIT,
        resource_status=resource.status if resource else Status.COMPLETE,
        resource_status_reason=resource.reason if resource else "",
        resource_identity=ResourceIdentity(stack.project_id, stack.name, stack.id, f"/resources/{change.name}"),
        stack_identity=ResourceIdentity(stack.project_id, stack.name, stack.id, ""),
        stack_name=stack.name,
        physical_resource_id=resource.physical_id if resource else None,
        creation_time=serializers.time(resource.created_at) if resource else None,
        updated_time=serializers.time(resource.updated_at or resource.created_at) if resource else None,
        description=change.definition.get("description") or "",
        metadata=tx.secrets.redact(dict(change.definition.get("metadata") or {})),
        attributes={},
        required_by=[],
        properties=tx.secrets.redact(change.properties),
        changed_properties=list(change.differing),
    )
