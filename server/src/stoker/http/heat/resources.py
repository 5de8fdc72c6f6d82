"""/v1/{project}/stacks/{name}/{id}/resources"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.deployments.derive import redact_metadata
from stoker.deployments.documents import Document
from stoker.deployments.run_plan import WAITING
from stoker.http.contracts import Body, LongText, Query, Whole, operation
from stoker.http.heat import serializers, stack_lookup
from stoker.http.heat.serializers import LiveDeployment, StackResource
from stoker.http.request import RequestContext, Response
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.stack import Action, Resource, Stack, Status
from stoker.resources.base import TakesSignals
from stoker.stacks import operations, signals
from stoker.stacks.engine.session import StackSession, all_attributes
from stoker.stacks.operations import no_resource
from stoker.stacks.outputs import prime_stack, prime_tree
from stoker.store import deployments, documents, resources, rows, servers, stacks
from stoker.store.tx import Tx

_FILTERS: Mapping[str, Callable[[Resource], str]] = {
    "type": lambda r: r.declared_type,
    "status": lambda r: r.status.value,
    "name": lambda r: r.name,
    "action": lambda r: r.action.value,
    "id": lambda r: r.id,
    "physical_resource_id": lambda r: r.physical_id or "",
}
#: The channel that is recorded for agents that poll this API.
_POLLED = "POLL_SERVER_HEAT"
#: Actions during which a resource accepts no signal, as in Heat, unless its type handles signals.
_DEAF = (Action.SUSPEND, Action.DELETE)


class ResourceQuery(Query, forbid_unknown_fields=True):
    with_detail: bool = False
    nested_depth: Annotated[Whole, Meta(description="Levels of nested stacks whose resources are included")] = 0
    type: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    physical_resource_id: tuple[str, ...] = ()

    def match(self, resource: Resource) -> bool:
        return all(read(resource) in values for name, read in _FILTERS.items() if (values := getattr(self, name)))


class ResourceMark(Body, forbid_unknown_fields=True):
    mark_unhealthy: bool
    resource_status_reason: LongText | None = None


@operation(200, {"resources": list[StackResource]})
def index(request: RequestContext, tx: Tx, query: ResourceQuery) -> dict[str, Any]:
    """
    List the resources of a stack, with ``nested_depth`` also of nested stacks. Raises Invalid for unknown filters.
    """
    top = stack_lookup.stack(tx, request)
    if query.nested_depth or query.with_detail:
        prime_tree(tx, top.root_id)
    shown = [
        resource
        for stack in stack_lookup.within(tx, top, query.nested_depth)
        for resource in _of_stack(tx, request, stack, detail=query.with_detail, match=query.match)
    ]
    return {"resources": shown}


@operation(200, {"resource": StackResource})
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return a resource with its attributes."""
    name = request.path["resource_name"]
    stack = stack_lookup.stack(tx, request)
    resource = resources.shown(tx, stack.id, name)
    if resource is None:
        raise no_resource(name, stack)
    return {
        "resource": serializers.resource(
            resource,
            stack,
            request.app.settings.public_url,
            resources.required_by(tx, stack.id, name),
            stacks.of_resource(tx, stack.id, resource.id),
            deployment=live_deployments(tx, request, [resource]).get(resource.physical_id or "", UNSET),
            **_detail(StackSession(tx, request.app.engine, stack), resource),
        )
    }


def _of_stack(
    tx: Tx, request: RequestContext, stack: Stack, *, detail: bool, match: Callable[[Resource], bool]
) -> list[StackResource]:
    everything = visible_resources(resources.of_stack(tx, stack.id))
    matches = [resource for resource in everything if match(resource)]
    live = live_deployments(tx, request, matches)
    nested = {inner.parent_resource_id: inner for inner in stacks.children(tx, stack.id)}
    required_by = _required_by(everything)
    return [
        serializers.resource(
            resource,
            stack,
            request.app.settings.public_url,
            required_by.get(resource.name, ()),
            nested.get(resource.id),
            deployment=live.get(resource.physical_id or "", UNSET),
            **(_detail(prime_stack(tx, request.app.engine, stack), resource) if detail else {}),
        )
        for resource in matches
    ]


@operation(200, {"metadata": dict[str, Any]})
async def metadata(request: RequestContext) -> Response:
    """Return a resource's metadata, which agents with POLL_SERVER_HEAT poll."""
    # Runs on the event loop; most requests are answered from memory.
    form = f"heat/{request.path['stack_name']}/{request.path['stack_id']}/{request.path['resource_name']}"
    document = request.app.documents.get_cached(request.caller.resource, form) if request.caller.resource else None
    if document is None:
        return await request.in_thread(_metadata, request, form)
    request.app.documents.record_sent(document, _POLLED)
    return Response(200, document.body)


def _metadata(request: RequestContext, form: str) -> Response:
    epoch = request.app.documents.epoch
    with request.read() as tx:
        stack, resource = _authorized_stack(tx, request)
        revision = documents.revision(tx, resource.physical_id or resource.id)
        server_id = resource.physical_id if request.caller.resource else None
        unsent = documents.unsent(tx, server_id, stack.project_id) if server_id else ()
        session = StackSession(tx, request.app.engine, stack)
        live = session.type_of(resource).live_metadata(session.context, resource)
    combined = {**resource.metadata, **live}
    if request.caller.resource is None:  # the caller is a person, not an agent
        return Response(200, {"metadata": redact_metadata(tx, combined)})
    body = rows.dump({"metadata": combined}).encode()
    if request.caller.resource and resource.physical_id and session.type_of(resource).has_live_metadata:
        document = Document(revision, body, unsent)
        request.app.documents.cache(resource.id, resource.physical_id, form, document, epoch)
        request.app.documents.record_sent(document, _POLLED)
    return Response(200, body)


@operation(
    200, type(None), errors=(409,), body_optional=True, example={"deploy_stdout": "done", "deploy_status_code": 0}
)
def signal(request: RequestContext, tx: Tx, body: dict[str, Any]) -> None:
    """
    Signal a resource, or with ``unset_hook`` in the body remove a breakpoint.

    The body for a deployment contains deploy_stdout, deploy_stderr, deploy_status_code and the config's outputs.
    """
    stack, resource = _authorized_stack(tx, request)
    if "unset_hook" in body:
        request.require_resource(None)  # a token for signals unsets no hook
        hook = str(body["unset_hook"])
        signals.unset_hook(tx, request.app.engine, stack, request.path["resource_name"], hook)
        return
    kind = request.app.engine.type(resource.type)
    if resource.action in _DEAF and not isinstance(kind, TakesSignals):
        raise Invalid(f"Signal resource during {resource.action} is not supported.")
    number = request.caller.principal.run if request.caller.principal is not None else None
    signals.deliver(tx, request.app.engine, resource, body, number=number)


def _authorized_stack(tx: Tx, request: RequestContext) -> tuple[Stack, Resource]:
    """
    Return the stack and the resource of the path.

    The user of a resource receives the same error for every other path, so that it cannot find out which resources
    exist.
    """
    name = request.path["resource_name"]
    try:
        stack = stack_lookup.stack(tx, request)
        resource = signals.find_target(tx, stack, name, request.caller.resource)
        if resource is None:
            raise no_resource(name, stack)
    except EntityNotFound:
        request.require_resource(None)
        raise
    return stack, resource


@operation(200, type(None), errors=(409,), example={"mark_unhealthy": True})
def mark(request: RequestContext, tx: Tx, body: ResourceMark) -> None:
    """Mark a resource as unhealthy, so that the next update replaces it, or as healthy again."""
    reason = body.resource_status_reason or "state changed by user"
    stack = stack_lookup.stack(tx, request, live=True)
    name = request.path["resource_name"]
    operations.mark(tx, request.app.engine, stack.id, name, unhealthy=body.mark_unhealthy, reason=reason)


def visible_resources(everything: Iterable[Resource]) -> list[Resource]:
    """Return one resource per stack and name: the current one, or the one being deleted if there is no current one."""
    by_name: dict[tuple[str, str], Resource] = {}
    for resource in everything:
        name = resource.stack_id, resource.name
        if resource.current or name not in by_name:
            by_name[name] = resource
    return list(by_name.values())


def _required_by(everything: Sequence[Resource]) -> dict[str, list[str]]:
    required_by: dict[str, list[str]] = {}
    for resource in everything:
        for name in resource.requires:
            required_by.setdefault(name, []).append(resource.name)
    return required_by


def live_deployments(tx: Tx, request: RequestContext, matches: Iterable[Resource]) -> dict[str, LiveDeployment]:
    """Return the state of runs in progress, for live views, by the id of the deployment."""
    in_progress = [r.physical_id for r in matches if r.status is Status.IN_PROGRESS and r.physical_id]
    under_way = deployments.under_way(tx, in_progress)
    waiting = {server_id for server_id, reason, _ in under_way.values() if reason == WAITING}
    absent = _find_absent(tx, request, waiting)
    return {
        id: LiveDeployment(absent.get(server_id, reason) if reason == WAITING else reason, last)
        for id, (server_id, reason, last) in under_way.items()
    }


def _find_absent(tx: Tx, request: RequestContext, server_ids: Collection[str]) -> dict[str, str]:
    """Return why runs wait for those of these servers that are not online, by the server's id."""
    return {
        server.id: f"{WAITING}: {server.name} is {status}"
        for server in servers.find_several(tx, server_ids).values()
        if server.project_id == request.project  # a policy may admit deployments of other projects
        and (status := server.status(tx.now, request.app.settings.offline_after)) != "ONLINE"
    }


def _detail(session: StackSession, resource: Resource) -> dict[str, Any]:
    return {
        "description": resource.definition.get("description") or "",
        "attributes": session.tx.secrets.redact(all_attributes(session, resource)),
    }
