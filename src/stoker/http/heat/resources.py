"""/v1/{project}/stacks/{name}/{id}/resources"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stoker.deployments.derive import redact_metadata
from stoker.deployments.documents import Document
from stoker.http import params
from stoker.http.heat import serializers, stack_lookup
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import operations, signals
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import no_resource
from stoker.stacks.queries.attributes import all_attributes
from stoker.stacks.queries.prefetch import prefetch_stack, prefetch_trees
from stoker.store import deployments, documents, resources, runs, stacks
from stoker.store.tx import Tx

FILTERS: Mapping[str, Callable[[Resource], str]] = {
    "type": lambda r: r.declared_type,
    "status": lambda r: r.status.value,
    "name": lambda r: r.name,
    "action": lambda r: r.action.value,
    "id": lambda r: r.id,
    "physical_resource_id": lambda r: r.physical_id or "",
}
_KNOWN = frozenset((*FILTERS, "nested_depth", "with_detail"))
#: The channel that is recorded for agents that poll this API.
_POLLED = "POLL_SERVER_HEAT"
#: Actions during which a resource accepts no signal, as in Heat, unless its type handles signals.
_DEAF = (Action.SUSPEND, Action.DELETE)


def index(request: RequestContext) -> Response:
    """
    List the resources of a stack, with ``nested_depth`` also of nested stacks. Raises Invalid for unknown filters.
    """
    if unknown := sorted(set(request.query) - _KNOWN):
        raise Invalid(f"Invalid filter parameters {', '.join(unknown)}")
    detail = params.flag(request.query.get("with_detail"), "with_detail")
    depth = params.whole(request.query.get("nested_depth"), "nested_depth") or 0
    with request.app.store.read() as tx:
        top = stack_lookup.stack(tx, request)
        if depth or detail:
            prefetch_trees(tx, [top.root_id])
        shown = [
            one
            for stack in stack_lookup.within(tx, top, depth)
            for one in _of_stack(tx, request, stack, detail=bool(detail), wanted=lambda each: _matches(request, each))
        ]
    return Response(200, {"resources": shown})


def show(request: RequestContext) -> Response:
    name = request.path["resource_name"]
    with request.app.store.read() as tx:
        stack = stack_lookup.stack(tx, request)
        found = _of_stack(tx, request, stack, detail=True, wanted=lambda each: each.name == name)
    if not found:
        raise no_resource(name, stack)
    return Response(200, {"resource": found[0]})


def _of_stack(
    tx: Tx, request: RequestContext, stack: Stack, *, detail: bool, wanted: Callable[[Resource], bool]
) -> list[dict[str, Any]]:
    everything = _visible_resources(resources.of_stack(tx, stack.id))
    found = [each for each in everything if wanted(each)]
    under_way = deployments.under_way(tx, _waiting_for(found))
    nested = {inner.parent_resource_id: inner for inner in stacks.children(tx, stack.id)}
    required_by = _required_by(everything)
    links = stack_lookup.links(request)
    shown = []
    for each in found:
        one = serializers.resource(each, stack, links, required_by.get(each.name, ()), nested.get(each.id))
        if detail:
            one |= _detail(tx, request, stack, each)
        shown.append(one | _progress(each, under_way))
    return shown


async def metadata(request: RequestContext) -> Response:
    """
    Return a resource's metadata, which agents with POLL_SERVER_HEAT poll.

    Runs on the event loop; most requests are answered from memory.
    """
    form = f"heat/{request.path['stack_name']}/{request.path['stack_id']}/{request.path['resource_name']}"
    known = request.app.documents.get_cached(request.only, form) if request.only else None
    if known is None:
        return await request.in_thread(_metadata, request, form)
    request.app.documents.record_sent(known, _POLLED)
    return Response(200, known.body)


def _metadata(request: RequestContext, form: str) -> Response:
    epoch = request.app.documents.epoch
    with request.app.store.read() as tx:
        stack, found = _authorized_stack(tx, request)
        revision = documents.revision(tx, found.physical_id or found.id)
        unsent = runs.unsent(tx, found.physical_id, stack.project_id) if request.only and found.physical_id else ()
        transition = StackSession(tx, request.app.engine, stack)
        live = transition.type_of(found).live_metadata(transition.context, found)
    said = {**found.metadata, **live}
    if request.only is None:  # the caller is a person, not an agent
        return Response(200, {"metadata": redact_metadata(tx, said)})
    response = Response(200, {"metadata": said})
    if request.only and found.physical_id and transition.type_of(found).has_live_metadata:
        document = Document(revision, bytes(response.to_starlette().body), unsent)
        request.app.documents.cache(found.id, found.physical_id, form, document, epoch)
        request.app.documents.record_sent(document, _POLLED)
    return response


def signal(request: RequestContext) -> Response:
    """Signal a resource, or with ``unset_hook`` in the body remove a breakpoint."""
    details = request.json() if request.body.strip() else None
    if details is not None and not isinstance(details, dict):
        raise Invalid("a signal's body must be a JSON object")

    def do(tx: Tx) -> None:
        stack, found = _authorized_stack(tx, request)
        if details and "unset_hook" in details:
            request.require_resource(None)  # a token for signals unsets no hook
            hook = str(details["unset_hook"])
            signals.unset_hook(tx, request.app.engine, stack, request.path["resource_name"], hook)
            return
        kind = request.app.engine.type(found.type)
        if found.action in _DEAF and kind.signal is None:
            raise Invalid(f"Signal resource during {found.action} is not supported.")
        signals.deliver(tx, request.app.engine, found, details or {})

    request.app.store.write(do)
    return Response(200, b"null")


def _authorized_stack(tx: Tx, request: RequestContext) -> tuple[Stack, Resource]:
    """
    Return the stack and the resource of the path.

    The user of a resource receives the same error for every other path, so that it cannot find out which resources
    exist.
    """
    name = request.path["resource_name"]
    try:
        stack = stack_lookup.stack(tx, request)
        found = signals.find_target(tx, stack, name, request.only)
        if found is None:
            raise no_resource(name, stack)
    except EntityNotFound:
        request.require_resource(None)
        raise
    return stack, found


def mark(request: RequestContext) -> Response:
    """Mark a resource as unhealthy, so that the next update replaces it, or as healthy again."""
    body = params.body(request)
    if unknown := sorted(set(body) - {"mark_unhealthy", "resource_status_reason"}):
        raise Invalid(f"Unexpected parameters in request body: {', '.join(unknown)}")
    unhealthy = params.flag(body.get("mark_unhealthy"), "mark_unhealthy")
    if unhealthy is None:
        raise Invalid("mark_unhealthy is needed: true or false")
    said = params.text(body.get("resource_status_reason"), "resource_status_reason", 65535)
    reason = said or "state changed by user"

    def do(tx: Tx) -> None:
        stack = stack_lookup.stack(tx, request, live=True)
        name = request.path["resource_name"]
        operations.mark(tx, request.app.engine, stack.id, name, unhealthy=unhealthy, reason=reason)

    request.app.store.write(do)
    return Response(200, b"null")


def _find(tx: Tx, stack: Stack, name: str) -> Resource:
    found = resources.find_by_name(tx, stack.id, name)
    if found is None:
        raise no_resource(name, stack)
    return found


def _visible_resources(found: Iterable[Resource]) -> list[Resource]:
    """Return one resource per name: the current one, or the one being deleted if there is no current one."""
    by_name: dict[str, Resource] = {}
    for each in found:
        if each.current or each.name not in by_name:
            by_name[each.name] = each
    return list(by_name.values())


def _matches(request: RequestContext, resource: Resource) -> bool:
    return all(read(resource) in request.query.getlist(name) for name, read in FILTERS.items() if name in request.query)


def _required_by(found: Sequence[Resource]) -> dict[str, list[str]]:
    required_by: dict[str, list[str]] = {}
    for each in found:
        for name in each.requires:
            required_by.setdefault(name, []).append(each.name)
    return required_by


def _waiting_for(found: Iterable[Resource]) -> list[str]:
    return [each.physical_id for each in found if each.status is Status.IN_PROGRESS and each.physical_id]


def _progress(resource: Resource, under_way: dict[str, tuple[str | None, str | None]]) -> dict[str, Any]:
    """Return the state of the resource's run for live views (Stoker's own)."""
    said = under_way.get(resource.physical_id or "")
    return {} if said is None else {"deployment": {"status_reason": said[0], "last_log": said[1]}}


def _detail(tx: Tx, request: RequestContext, stack: Stack, resource: Resource) -> dict[str, Any]:
    return {
        "description": resource.definition.get("description") or "",
        "attributes": tx.secrets.redact(all_attributes(prefetch_stack(tx, request.app.engine, stack), resource)),
    }
