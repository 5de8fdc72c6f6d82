"""Previews of requests: /v1/{project}/stacks/preview, …/stacks/server_previews and …/stacks/{name}/{id}/preview."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.api import warning_headers
from stoker.http.contracts import Absent, Answer, Id, Query, Time, described, fill, operation
from stoker.http.heat import serializers, stack_requests
from stoker.http.heat.serializers import StackOptions, StackOutput
from stoker.http.heat.stack_requests import (
    TEMPLATE_EXAMPLE,
    PreviewBody,
    StackPatch,
    StackReplacement,
    open_constraints,
)
from stoker.http.heat.stacks import UPDATE_EXAMPLE
from stoker.http.request import RequestContext, Response
from stoker.model.stack import Action, Resource, Stack, Status
from stoker.stacks import operations
from stoker.stacks.outputs import names as output_names
from stoker.stacks.prechecks import Prechecks
from stoker.stacks.templates.outline import Change, Kind, Outline
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare
from stoker.store import resources, stacks
from stoker.store.rows import heat_time
from stoker.store.tx import Tx
from stoker.triggers.update_previews import ServerPreview, start_previews
from stoker.types.planned_runs import Planner

#: The id that Heat shows for objects that do not exist.
_NO_ID = "None"


class ResourceIdentity(Answer):
    tenant: str
    stack_name: str
    stack_id: Id
    path: str


class PlannedResource(Answer):
    """A resource as a preview shows it."""

    resource_name: Id
    resource_type: str
    resource_action: Action
    resource_status: Status
    resource_status_reason: str
    resource_identity: ResourceIdentity
    stack_identity: ResourceIdentity
    stack_name: Id
    physical_resource_id: str | None
    creation_time: Time | None
    updated_time: Time | None
    description: str
    metadata: dict[str, Any]
    attributes: dict[str, Any]
    required_by: list[str]
    properties: dict[str, Any]


class ResourceChange(PlannedResource):
    changed_properties: Annotated[list[str], Meta(description="Names of the properties that differ")]
    previous_properties: Annotated[dict[str, Any], Meta(description="The present values of these properties")]


class NewResource(PlannedResource):
    parent_resource: str | Absent = UNSET


NewResources = Annotated[
    Any, described(NewResource | list[Any], "A planned resource; a nested stack is the list of its resources.")
]


class PreviewedStack(StackOptions, kw_only=True):
    outputs: list[StackOutput]
    resources: list[NewResources]


class ResourceChanges(Answer):
    unchanged: list[ResourceChange]
    updated: list[ResourceChange]
    replaced: list[ResourceChange]
    added: list[ResourceChange]
    deleted: list[ResourceChange]


class PlannedRun(Answer):
    """A run that the operation would start on a server."""

    resource_name: Annotated[str, Meta(description="In a nested stack or group: all names from the outermost stack on")]
    action: str
    mode: Annotated[str | None, Meta(description="undo: the run removes what the deployment made")]
    server_id: Annotated[Id | None, Meta(description="None: the server is not known yet")]
    server_name: str | None


class ChangesAnswer(Answer):
    resource_changes: ResourceChanges
    planned_runs: Annotated[list[PlannedRun], Meta(description="The runs that the update would start, in their order")]
    plan: Annotated[Id, Meta(description="A digest of the plan, with which an update applies only this plan")]
    server_previews: list[ServerPreview] | Absent = UNSET


class ServerPreviewsAnswer(Answer):
    server_previews: list[ServerPreview]


class PreviewQuery(Query):
    show_nested: bool = False
    on_servers: Annotated[
        bool, Meta(description="Whether triggers with the mode PREVIEW show what the deployments would change")
    ] = False


@operation(
    200,
    {"stack": PreviewedStack, "planned_runs": list[PlannedRun]},
    errors=(409,),
    example={"stack_name": "previewed", "template": TEMPLATE_EXAMPLE, "parameters": {"length": 8}},
)
def create(request: RequestContext, body: PreviewBody) -> Response:
    """Return the stack that a create request would produce."""
    resolved = _prepare_new(request, body, every_member=True)
    with request.read() as tx:
        stack, prechecks = _plan_new(tx, request, body, resolved)
        missing = prechecks.list_missing_programs()
        planner = Planner(tx, request.app.engine, stack, resolved, exists=False)
    values = {name: tx.secrets.redact(planner.show(value)) for name, value in resolved.outline.outputs.items()}
    shown = fill(
        PreviewedStack,
        stack,
        **serializers.detail(stack, request.app.settings.public_url),
        outputs=[{**output, "output_value": values.get(output["output_key"])} for output in output_names(stack)],
        resources=_serialize_outline(planner, resolved.outline, stack.name),
    )
    answer = {"stack": shown, "planned_runs": [fill(PlannedRun, run) for run in planner.runs]}
    return Response(200, answer, warning_headers([*resolved.warnings, *missing]))


@operation(
    201,
    ServerPreviewsAnswer,
    errors=(409,),
    example={"stack_name": "previewed", "template": TEMPLATE_EXAMPLE, "parameters": {"length": 8}},
)
def create_on_servers(request: RequestContext, body: PreviewBody) -> Response:
    """Start triggers that show what the deployments of a new stack would change on servers that exist already."""
    resolved = _prepare_new(request, body)

    def do(tx: Tx) -> list[ServerPreview]:
        stack, _ = _plan_new(tx, request, body, resolved)
        return _start_previews(tx, request, stack, resolved, exists=False)

    answer = ServerPreviewsAnswer(server_previews=request.write(do))
    return Response(201, answer, warning_headers(resolved.warnings))


def _prepare_new(request: RequestContext, body: PreviewBody, *, every_member: bool = False) -> ResolvedStack:
    identity = Identity(_NO_ID, stack_requests.name(body.stack_name), request.project)
    new, constraints = body.stack_request(request), open_constraints(request)
    return prepare(request.app.engine, new, identity, every_member=every_member, constraints=constraints)


def _plan_new(tx: Tx, request: RequestContext, body: PreviewBody, resolved: ResolvedStack) -> tuple[Stack, Prechecks]:
    """
    Return the row of the stack that a create request would write, and the checks of its deployments.

    Raises what would refuse its deployments.
    """
    stack = operations.new_stack(tx, resolved, body.options(), username=request.user.user_name)
    prechecks = operations.refuse_deployments(tx, request.app.engine, stack, resolved)
    stacks.learn_hidden(tx, stack)
    return stack, prechecks


def _serialize_outline(planner: Planner, outline: Outline, stack_name: str, parent: str | None = None) -> list[Any]:
    """Serialize planned resources as Heat does: a nested stack becomes the list of its resources."""
    redact = planner.tx.secrets.redact
    required_by: dict[str, list[str]] = {}
    for name, resource in outline.resources.items():
        for required in resource.definition.requires:
            required_by.setdefault(required, []).append(name)
    return [
        _serialize_outline(planner, resource.inside, f"{stack_name}-{name}", name)
        if resource.inside is not None
        else NewResource(
            **_describe(None, name, Identity(_NO_ID, stack_name, planner.project_id)),
            resource_type=resource.definition.mapped_from or resource.definition.type,
            physical_resource_id="",
            description=resource.definition.description,
            metadata=redact(planner.show(resource.metadata) or {}),
            attributes=dict.fromkeys(resource.type.attributes or ()),
            required_by=sorted(required_by.get(name, ())),
            properties=redact(planner.show(resource.properties)),
            parent_resource=UNSET if parent is None else parent,
        )
        for name, resource in outline.resources.items()
    ]


@operation(200, ChangesAnswer, errors=(409,), example=UPDATE_EXAMPLE)
def replace_it(request: RequestContext, body: StackReplacement, query: PreviewQuery) -> Response:
    """Return the changes that a PUT of the stack would make."""
    return _changes(request, stack_requests.for_replacement(request, body)[0], query)


@operation(200, ChangesAnswer, errors=(409,), example=UPDATE_EXAMPLE)
def change(request: RequestContext, body: StackPatch, query: PreviewQuery) -> Response:
    """Return the changes that a PATCH of the stack would make."""
    return _changes(request, stack_requests.for_patch(request, body)[0], query)


def _changes(request: RequestContext, resolved: ResolvedStack, query: PreviewQuery) -> Response:
    engine, stack_id = request.app.engine, resolved.identity.stack_id
    with request.read() as tx:
        current = stacks.get(tx, stack_id)
        operations.refuse_update(current)
        present = resources.of_stack(tx, stack_id)
        missing = operations.refuse_deployments(tx, engine, current, resolved, present).list_missing_programs()
        planner = Planner(tx, engine, current, resolved, exists=True)
        listed: dict[str, list[ResourceChange]] = {kind.value: [] for kind in Kind}
        for level in planner.levels if query.show_nested else planner.levels[:1]:
            if not level.exists or level.is_of_group:
                continue
            for change in level.changes:
                if not change.is_outdated:
                    listed[change.kind.value].append(_serialize_change(planner, change, level.stack))
        answer = ChangesAnswer(
            resource_changes=ResourceChanges(**listed),
            planned_runs=[fill(PlannedRun, run) for run in planner.runs],
            plan=planner.digest,
        )
    if query.on_servers:
        answer.server_previews = request.write(
            lambda tx: _start_previews(tx, request, stacks.get(tx, stack_id), resolved)
        )
    return Response(200, answer, warning_headers([*resolved.warnings, *missing]))


def _start_previews(
    tx: Tx, request: RequestContext, stack: Stack, resolved: ResolvedStack, *, exists: bool = True
) -> list[ServerPreview]:
    return start_previews(tx, request.app.engine, stack, resolved, request.user.user_name, exists=exists)


def _serialize_change(planner: Planner, change: Change, stack: Stack) -> ResourceChange:
    """Serialize a changed resource as Heat's engine does, and add the changed properties."""
    resource, redact = change.resource, planner.tx.secrets.redact
    previous = {} if resource is None else {name: resource.properties.get(name) for name in change.differing}
    return ResourceChange(
        **_describe(resource, change.name, Identity.of(stack)),
        resource_type=change.definition.get("mapped_from") or change.type,
        physical_resource_id=resource.physical_id if resource else None,
        description=change.definition.get("description") or "",
        metadata=redact(dict(change.definition.get("metadata") or {})),
        attributes={},
        required_by=[],
        properties=redact(planner.show(change.properties)),
        changed_properties=list(change.differing),
        previous_properties=redact(previous),
    )


def _describe(resource: Resource | None, name: str, stack: Identity) -> dict[str, Any]:
    """Return the place and the state of a planned resource; None: the resource does not exist yet."""
    place = {
        "resource_name": name,
        "resource_identity": ResourceIdentity(stack.project_id, stack.stack_name, stack.stack_id, f"/resources/{name}"),
        "stack_identity": ResourceIdentity(stack.project_id, stack.stack_name, stack.stack_id, ""),
        "stack_name": stack.stack_name,
    }
    if resource is None:
        state = {"resource_action": Action.INIT, "resource_status": Status.COMPLETE, "resource_status_reason": ""}
        return {**place, **state, "creation_time": None, "updated_time": None}
    return {
        **place,
        "resource_action": resource.action,
        "resource_status": resource.status,
        "resource_status_reason": resource.reason,
        "creation_time": heat_time(resource.created_at),
        "updated_time": heat_time(resource.updated_at or resource.created_at),
    }
