"""/v1/{project}/stacks"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.api import warning_headers
from stoker.http.contracts import Absent, Answer, Count, Id, Link, Query, Whole, fill, operation
from stoker.http.heat import serializers, stack_lookup, stack_operations, stack_requests
from stoker.http.heat.serializers import StackDetail, StackOutput, StackSummary
from stoker.http.heat.stack_operations import OPERATION
from stoker.http.heat.stack_requests import (
    TEMPLATE_EXAMPLE,
    ExportedStack,
    NewStack,
    StackPatch,
    StackReplacement,
    open_constraints,
)
from stoker.http.request import RequestContext, Response
from stoker.model.stack import Stack
from stoker.stacks import export as stack_export
from stoker.stacks import operations, outputs
from stoker.stacks.adoption import Adoption
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store import stack_lists, stacks
from stoker.store.stack_lists import Filter
from stoker.store.tx import Tx

_EXAMPLE = {"stack_name": "example", "template": TEMPLATE_EXAMPLE, "parameters": {"length": 8}, "tags": "a,b"}
UPDATE_EXAMPLE = {"template": TEMPLATE_EXAMPLE, "parameters": {"length": 9}, "tags": "a,b"}
#: Filters of ``StackQuery``, with the columns that they filter.
_COLUMNS = {
    "id": "id",
    "name": "name",
    "stack_name": "name",
    "status": "status",
    "stack_status": "status",
    "action": "action",
    "stack_action": "action",
    "username": "username",
    "stack_owner": "username",
    "stack_status_reason": "reason",
    "stack_user_project_id": "user_project_id",
    "tenant": "project_id",
    "owner_id": "parent_id",
    "parent": "parent_id",
}
#: Tags that omit a stack from lists, unless show_hidden includes it: Heat's default.
_HIDDEN_TAGS = ("data-processing-cluster",)
_Tags = Annotated[tuple[str, ...], Meta(description="Tags, separated by commas")]


class StackQuery(Query):
    limit: Whole | None = None
    marker: str | None = None
    sort_keys: tuple[str, ...] = ()
    sort_dir: str | None = None
    show_deleted: bool = False
    show_nested: bool = False
    show_hidden: bool = False
    with_count: bool = False
    contains: Annotated[str, Meta(description="Part of the name (Stoker's own)")] = ""
    tags: _Tags = ()
    tags_any: _Tags = ()
    not_tags: _Tags = ()
    not_tags_any: _Tags = ()
    id: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    stack_name: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    stack_status: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    stack_action: tuple[str, ...] = ()
    username: tuple[str, ...] = ()
    stack_owner: tuple[str, ...] = ()
    stack_status_reason: tuple[str, ...] = ()
    stack_user_project_id: tuple[str, ...] = ()
    tenant: tuple[str, ...] = ()
    owner_id: tuple[str, ...] = ()
    parent: tuple[str, ...] = ()


class OutputsQuery(Query):
    resolve_outputs: Annotated[bool, Meta(description="Whether the response contains the outputs")] = True


class StackPage(Answer):
    stacks: list[StackSummary]
    links: list[Link] | Absent = UNSET
    count: Count | Absent = UNSET


class OutputName(Answer):
    output_key: str
    description: Any


class ShownEnvironment(Answer):
    parameters: dict[str, Any]
    parameter_defaults: dict[str, Any]
    resource_registry: dict[str, Any]
    event_sinks: list[Any]
    encrypted_param_names: list[Any]
    parameter_merge_strategies: dict[str, Any] | Absent = UNSET


@operation(
    201, {"stack": {"id": Id, "links": list[Link]}}, errors=(409,), headers=("Location", OPERATION), example=_EXAMPLE
)
def create(request: RequestContext, body: NewStack) -> Response:
    """Create a stack, or adopt one if the body contains ``adopt_stack_data``."""
    name = stack_requests.name(body.stack_name)
    data = body.take_adoption_data()
    adopt = None if data is None else Adoption.read(data)
    resolved = stack_requests.new(request, body, name)
    if adopt is not None and (constraints := open_constraints(request)) is not None:
        request.app.provider.refuse_missing(request.app.engine.types, adopt.resources, constraints)
    engine, options, user = request.app.engine, body.options(), request.user.user_name
    stack = stack_operations.begin(
        request,
        resolved,
        "create stack" if adopt is None else "adopt stack",
        lambda tx: operations.create(tx, engine, resolved, options, username=user, adopt=adopt),
    )
    href = serializers.stack_url(request.app.settings.public_url, stack)
    headers = {"Location": href, **stack_operations.operation_header(stack), **warning_headers(resolved.warnings)}
    return Response(201, {"stack": {"id": stack.id, "links": [Link(href, "self")]}}, headers)


@operation(200, StackPage)
def index(request: RequestContext, tx: Tx, query: StackQuery) -> StackPage:
    """List the stacks that match the query's filters, newest first; one page if the query has a limit."""
    filter_ = _filter(query)
    page = stack_lists.list_all(tx, request.project, filter_)
    count = stack_lists.count(tx, request.project, filter_) if query.with_count else UNSET
    root = request.app.settings.public_url
    summaries = [
        fill(
            StackSummary,
            stack,
            links=[Link(serializers.stack_url(root, stack), "self")],
            description="",
            stack_status=f"{stack.action}_{stack.status}",
            tags=list(stack.tags) or None,
        )
        for stack in page
    ]
    shown = StackPage(summaries, count=count)
    if query.limit and len(page) == query.limit:
        following = request.raw.url.include_query_params(marker=page[-1].id)
        shown.links = [Link(f"{root}{following.path}?{following.query}", "next")]
    return shown


@operation(200, {"stack": StackDetail})
def show(request: RequestContext, tx: Tx, query: OutputsQuery) -> dict[str, Any]:
    """Return a stack with its outputs, unless the stack is deleted."""
    stack = stack_lookup.stack(tx, request)
    values: Any = UNSET
    if query.resolve_outputs and stack.deleted_at is None:
        values = tx.secrets.redact(outputs.all_values(tx, request.app.engine, stack))
    computed = serializers.detail(stack, request.app.settings.public_url)
    computed["parameters"] = tx.secrets.redact(computed["parameters"])
    return {
        "stack": fill(StackDetail, stack, stack_status=f"{stack.action}_{stack.status}", outputs=values, **computed)
    }


@operation(202, errors=(409,), headers=(OPERATION,), example=UPDATE_EXAMPLE)
def replace(request: RequestContext, body: StackReplacement) -> Any:
    """Replace the template and all options of a stack. Omitted options return to their defaults."""
    return _update(request, *stack_requests.for_replacement(request, body), body.plan)


@operation(202, errors=(409,), headers=(OPERATION,), example=UPDATE_EXAMPLE)
def change(request: RequestContext, body: StackPatch) -> Any:
    """Change the template, parameters or options of a stack, and keep omitted ones."""
    return _update(request, *stack_requests.for_patch(request, body), body.plan)


@operation(204, errors=(409,), headers=(OPERATION,))
def delete(request: RequestContext) -> Response:
    """Start the deletion of a stack, which aborts any operation in progress."""
    return Response(204, headers=stack_operations.operation_header(stack_operations.delete(request)))


@operation(200, ExportedStack)
def export(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return the data with which a stack can adopt this stack's resources, with the values of hidden parameters."""
    return stack_export.export(tx, stack_lookup.stack(tx, request, live=True))


@operation(200, ExportedStack, errors=(409,))
def abandon(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """
    Delete the stack, but keep the objects that its resources represent.

    Returns the data with which a stack can adopt these objects. Raises ActionInProgress.
    """
    stack = stack_lookup.root_stack(tx, request)
    return stack_export.abandon(tx, request.app.engine, stack.id)


@operation(200, dict[str, Any])
def template(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return the stack's template with its secrets redacted."""
    stack = stack_lookup.stack(tx, request)
    return stack_export.redacted_template(tx, stack, stacks.source(tx, stack.id))


@operation(200, ShownEnvironment)
def environment(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return the stack's environment with its secrets redacted."""
    stack = stack_lookup.stack(tx, request)
    return stack_export.redacted_environment(tx, stack, stacks.source(tx, stack.id))


@operation(200, dict[str, str])
def files(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return the files that accompanied the template."""
    return stack_export.visible_files(tx, stack_lookup.stack(tx, request))


@operation(200, {"outputs": list[OutputName]})
def list_outputs(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the names of the outputs."""
    return {"outputs": outputs.names(stack_lookup.stack(tx, request))}


@operation(200, {"output": StackOutput})
def show_output(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return one output with its value. Raises EntityNotFound."""
    stack = stack_lookup.stack(tx, request)
    value = outputs.one_value(tx, request.app.engine, stack, request.path["output_key"])
    return {"output": tx.secrets.redact(value)}


def _update(request: RequestContext, resolved: ResolvedStack, options: Options, plan: str | None) -> Response:
    def do(tx: Tx) -> Stack:
        if plan is not None:
            stack_operations.refuse_other_plan(tx, request, resolved, plan)
        return operations.update(tx, request.app.engine, resolved, options)

    updated = stack_operations.begin(request, resolved, "update stack", do)
    return Response(202, headers={**stack_operations.operation_header(updated), **warning_headers(resolved.warnings)})


def count(tx: Tx, project: str, status: str) -> int:
    """Return the number of stacks that ``index`` lists with this status."""
    return stack_lists.count(tx, project, _filter(StackQuery(status=(status,))))


def list_newest(tx: Tx, project: str, status: str, limit: int) -> list[Stack]:
    """Return the newest stacks that ``index`` lists with this status."""
    return stack_lists.list_all(tx, project, _filter(StackQuery(status=(status,), limit=limit)))


def _filter(query: StackQuery) -> Filter:
    equal: dict[str, list[str]] = {}
    for name, column in _COLUMNS.items():
        for value in getattr(query, name):
            action, _, status = value.partition("_")
            # a value such as CREATE_FAILED names action and status
            if column == "status" and status and action != "IN":
                equal.setdefault("action", []).append(action)
                equal.setdefault("status", []).append(status)
            else:
                equal.setdefault(column, []).append(value)
    return Filter(
        equal=equal,
        contains=query.contains,
        show_deleted=query.show_deleted,
        show_nested=query.show_nested,
        tags=_split(query.tags),
        tags_any=_split(query.tags_any),
        not_tags=_split(query.not_tags),
        not_tags_any=_split(query.not_tags_any),
        hidden_tags=() if query.show_hidden else _HIDDEN_TAGS,
        limit=query.limit,
        marker=query.marker,
        sort_keys=_split(query.sort_keys),
        descending=None if query.sort_dir is None else query.sort_dir == "desc",
    )


def _split(values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in value.split(",") if word]
