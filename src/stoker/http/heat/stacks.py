"""/v1/{project}/stacks"""

from __future__ import annotations

from typing import Any

from stoker.http import params
from stoker.http.heat import serializers, stack_lookup, stack_requests, warnings
from stoker.http.request_context import RequestContext, Response
from stoker.model.stack import Stack
from stoker.stacks import operations, secrets
from stoker.stacks.adoption import read_adoption_data
from stoker.stacks.operations import Options
from stoker.stacks.queries import export as stack_export
from stoker.stacks.queries import outputs
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store import resources, stack_lists, stacks
from stoker.store.stack_lists import Filter

#: Parameters of the list, with the columns that they filter.
FILTERS = {
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


def create(request: RequestContext) -> Response:
    """Create a stack, or adopt one if the body contains ``adopt_stack_data``."""
    body = stack_requests.body(request)
    name = stack_requests.name(body.get("stack_name"))
    data = stack_requests.for_adoption(body)
    adopt = None if data is None else read_adoption_data(data)
    identity, resolved = stack_requests.new(request, body, name)
    options = stack_requests.options(body)
    made = request.app.store.write(
        lambda tx: operations.create(
            tx,
            request.app.engine,
            resolved,
            options,
            identity,
            username=request.user.user_name,
            adopt=adopt,
        ),
        background=len(resolved.definitions) > operations.LARGE,
    )
    href = stack_lookup.links(request).stack(made)
    headers = {"Location": href, **warnings.headers(resolved.warnings)}
    return Response(201, {"stack": {"id": made.id, "links": [serializers.link(href)]}}, headers)


def index(request: RequestContext) -> Response:
    """List stacks that match the query's filters; one page if the query has a limit."""
    wanted = _filter(request)
    with request.app.store.read() as tx:
        found = stack_lists.list_all(tx, request.project, wanted)
        count = stack_lists.count(tx, request.project, wanted) if _flag(request, "with_count") else None
    links = stack_lookup.links(request)
    shown: dict[str, Any] = {"stacks": [serializers.stack_summary(each, links) for each in found]}
    if wanted.limit and len(found) == wanted.limit:
        following = request.raw.url.include_query_params(marker=found[-1].id)
        href = f"{request.app.settings.public_url}{following.path}?{following.query}"
        shown["links"] = [serializers.link(href, "next")]
    if count is not None:
        shown["count"] = count
    return Response(200, shown)


def show(request: RequestContext) -> Response:
    """Return a stack. Its outputs are left out with ``resolve_outputs=false``, and if the stack is deleted."""
    resolve = params.flag(request.query.get("resolve_outputs"), "resolve_outputs") is not False
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request)
        values = None
        if resolve and found.deleted_at is None:
            values = outputs.all_values(tx, request.app.engine, found)
    shown = serializers.stack(found, stack_lookup.links(request), tx.secrets.redact(values))
    return Response(200, {"stack": {**shown, "parameters": tx.secrets.redact(shown["parameters"])}})


def replace(request: RequestContext) -> Response:
    """Replace the template and all options of a stack. Omitted options return to their defaults."""
    return _update(request, *stack_requests.for_replacement(request, stack_requests.body(request)))


def change(request: RequestContext) -> Response:
    """Change the template, parameters or options of a stack, and keep omitted ones."""
    return _update(request, *stack_requests.for_patch(request, stack_requests.body(request)))


def delete(request: RequestContext) -> Response:
    """Start the deletion of a stack, which aborts any operation in progress."""
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request, live=True)
        large = resources.are_many(tx, found.id, operations.LARGE)
    stack_lookup.refuse_nested(found)
    request.app.store.write(lambda tx: operations.delete(tx, request.app.engine, found.id), background=large)
    return Response(204)


def export(request: RequestContext) -> Response:
    """Return the data with which a stack can adopt this stack's resources, with the values of hidden parameters."""
    with request.app.store.read() as tx:
        return Response(200, stack_export.export(tx, stack_lookup.stack(tx, request, live=True)))


def abandon(request: RequestContext) -> Response:
    """
    Delete the stack, but keep the objects that its resources represent.

    Returns the data with which a stack can adopt these objects. Raises ActionInProgress.
    """
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request, live=True)
    stack_lookup.refuse_nested(found)
    return Response(200, request.app.store.write(lambda tx: stack_export.abandon(tx, request.app.engine, found.id)))


def template(request: RequestContext) -> Response:
    """Return the stack's template with its secrets redacted."""
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request)
        return Response(200, secrets.redacted_template(tx, found, stacks.source(tx, found.id)))


def environment(request: RequestContext) -> Response:
    """Return the stack's environment with its secrets redacted."""
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request)
        return Response(200, secrets.redacted_environment(tx, found, stacks.source(tx, found.id)))


def files(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        return Response(200, secrets.visible_files(tx, stack_lookup.stack(tx, request)))


def list_outputs(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request)
    return Response(200, {"outputs": outputs.names(found)})


def show_output(request: RequestContext) -> Response:
    """Return one output with its value. Raises EntityNotFound."""
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request)
        value = outputs.one_value(tx, request.app.engine, found, request.path["output_key"])
    return Response(200, {"output": tx.secrets.redact(value)})


def _update(request: RequestContext, stack: Stack, resolved: ResolvedStack, options: Options) -> Response:
    request.app.store.write(
        lambda tx: operations.update(tx, request.app.engine, stack.id, resolved, options),
        background=len(resolved.definitions) > operations.LARGE,
    )
    return Response(202, headers=warnings.headers(resolved.warnings))


def _filter(request: RequestContext) -> Filter:
    equal: dict[str, list[str]] = {}
    for key, column in FILTERS.items():
        for value in request.query.getlist(key):
            action, _, status = value.partition("_")
            # a value such as CREATE_FAILED names action and status
            if column == "status" and status and action != "IN":
                equal.setdefault("action", []).append(action)
                equal.setdefault("status", []).append(status)
            else:
                equal.setdefault(column, []).append(value)
    direction = request.query.get("sort_dir")
    return Filter(
        equal=equal,
        show_deleted=_flag(request, "show_deleted"),
        show_nested=_flag(request, "show_nested"),
        tags=_words(request, "tags"),
        tags_any=_words(request, "tags_any"),
        not_tags=_words(request, "not_tags"),
        not_tags_any=_words(request, "not_tags_any"),
        hidden_tags=() if _flag(request, "show_hidden") else request.app.settings.hidden_tags,
        limit=params.whole(request.query.get("limit"), "limit"),
        marker=request.query.get("marker"),
        sort_keys=[key for said in request.query.getlist("sort_keys") for key in said.split(",") if key],
        descending=None if direction is None else direction == "desc",
    )


def _words(request: RequestContext, name: str) -> list[str]:
    return [word for said in request.query.getlist(name) for word in said.split(",") if word]


def _flag(request: RequestContext, name: str) -> bool:
    return bool(params.flag(request.query.get(name), name))
