"""/v1/{project}/stacks/{name}/{id}/resources"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stoker.deployments.documents import Document
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import finding, shapes
from stoker.model.errors import EntityNotFound, Forbidden, Invalid
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import operations, signals
from stoker.stacks.attributes import all_attributes
from stoker.stacks.looking import look_ahead, look_at
from stoker.stacks.operations import no_resource
from stoker.stacks.transition import Transition
from stoker.store import deployments, documents, resources, runs, stacks
from stoker.store.tx import Tx

FILTERS: Mapping[str, Callable[[Resource], str]] = {
    "type": lambda r: r.type,
    "status": lambda r: r.status.value,
    "name": lambda r: r.name,
    "action": lambda r: r.action.value,
    "id": lambda r: r.id,
    "physical_resource_id": lambda r: r.physical_id or "",
}
_KNOWN = frozenset((*FILTERS, "nested_depth", "with_detail"))
#: Of agents that poll here.
_POLLED = "POLL_SERVER_HEAT"
#: Heat signals nothing that is going.
_DEAF = (Action.SUSPEND, Action.DELETE)


def index(call: Call) -> Reply:
    if unknown := sorted(set(call.query) - _KNOWN):
        raise Invalid(f"Invalid filter parameters {', '.join(unknown)}")
    detail = reading.flag(call.query.get("with_detail"), "with_detail")
    depth = reading.whole(call.query.get("nested_depth"), "nested_depth") or 0
    with call.services.store.read() as tx:
        top = finding.stack(tx, call)
        if depth or detail:
            look_ahead(tx, [top.root_id])
        shown = [
            one
            for stack in finding.within(tx, top, depth)
            for one in _of_stack(tx, call, stack, detail=bool(detail), wanted=lambda each: _matches(call, each))
        ]
    return Reply(200, {"resources": shown})


def show(call: Call) -> Reply:
    name = call.path["resource_name"]
    with call.services.store.read() as tx:
        stack = finding.stack(tx, call)
        found = _of_stack(tx, call, stack, detail=True, wanted=lambda each: each.name == name)
    if not found:
        raise no_resource(name, stack)
    return Reply(200, {"resource": found[0]})


def _of_stack(
    tx: Tx, call: Call, stack: Stack, *, detail: bool, wanted: Callable[[Resource], bool]
) -> list[dict[str, Any]]:
    everything = _shown_ones(resources.of_stack(tx, stack.id))
    found = [each for each in everything if wanted(each)]
    under_way = deployments.under_way(tx, _waiting_for(found))
    nested = {inner.parent_resource_id: inner for inner in stacks.children(tx, stack.id)}
    required_by = _required_by(everything)
    links = finding.links(call)
    shown = []
    for each in found:
        one = shapes.resource(each, stack, links, required_by.get(each.name, ()), nested.get(each.id))
        if detail:
            one |= _detail(tx, call, stack, each)
        shown.append(one | _progress(each, under_way))
    return shown


async def metadata(call: Call) -> Reply:
    """What agents poll with POLL_SERVER_HEAT: on the event loop, and mostly answered from memory."""
    form = f"heat/{call.path['stack_name']}/{call.path['stack_id']}/{call.path['resource_name']}"
    known = call.services.documents.known(call.only, form) if call.only else None
    if known is None:
        return await call.in_thread(_metadata, call, form)
    call.services.documents.went_out(known, _POLLED)
    return Reply(200, known.body)


def _metadata(call: Call, form: str) -> Reply:
    with call.services.store.read() as tx:
        stack, found = _permitted(tx, call)
        revision = documents.revision(tx, found.physical_id or found.id)
        news = runs.undelivered(tx, found.physical_id, stack.project_id) if call.only and found.physical_id else ()
        transition = Transition(tx, call.services.engine, stack)
        live = transition.type_of(found).live_metadata(transition.context, found)
    reply = Reply(200, {"metadata": {**found.metadata, **live}})
    if call.only and found.physical_id and transition.type_of(found).has_live_metadata:
        document = Document(revision, bytes(reply.response().body), news)
        call.services.documents.remember(found.id, found.physical_id, form, document)
        call.services.documents.went_out(document, _POLLED)
    return reply


def signal(call: Call) -> Reply:
    details = call.json() if call.body.strip() else None
    if details is not None and not isinstance(details, dict):
        raise Invalid("a signal's body must be a JSON object")

    def do(tx: Tx) -> None:
        stack, found = _permitted(tx, call)
        if details and "unset_hook" in details:
            if call.only is not None:
                raise Forbidden("A token for signals unsets no hook.")
            hook = str(details["unset_hook"])
            signals.unset_hook(tx, call.services.engine, stack, call.path["resource_name"], hook)
            return
        kind = call.services.engine.type(found.type)
        if found.action in _DEAF and kind.signal is None:
            raise Invalid(f"Signal resource during {found.action} is not supported.")
        signals.signal_resource(tx, call.services.engine, stack, found, details or {})

    call.services.store.write(do)
    return Reply(200, b"null")


def _permitted(tx: Tx, call: Call) -> tuple[Stack, Resource]:
    """Who stands for one resource does not learn which others there are: for all that are not it, one answer."""
    name = call.path["resource_name"]
    try:
        stack = finding.stack(tx, call)
        found = signals.addressed(tx, stack, name, call.only)
        if found is None:
            raise no_resource(name, stack)
    except EntityNotFound:
        if call.only is None:
            raise
        raise Forbidden("You are not authorized to complete this action.") from None
    return stack, found


def mark(call: Call) -> Reply:
    """Unhealthy: the next update replaces it."""
    body = reading.body(call)
    if unknown := sorted(set(body) - {"mark_unhealthy", "resource_status_reason"}):
        raise Invalid(f"Unexpected parameters in request body: {', '.join(unknown)}")
    unhealthy = reading.flag(body.get("mark_unhealthy"), "mark_unhealthy")
    if unhealthy is None:
        raise Invalid("mark_unhealthy is needed: true or false")
    said = reading.text(body.get("resource_status_reason"), "resource_status_reason", 65535)
    reason = said or "state changed by user"

    def do(tx: Tx) -> None:
        stack = finding.stack(tx, call, live=True)
        name = call.path["resource_name"]
        operations.mark(tx, call.services.engine, stack.id, name, unhealthy=unhealthy, reason=reason)

    call.services.store.write(do)
    return Reply(200, b"null")


def _named(tx: Tx, stack: Stack, name: str) -> Resource:
    found = resources.named(tx, stack.id, name)
    if found is None:
        raise no_resource(name, stack)
    return found


def _shown_ones(found: Iterable[Resource]) -> list[Resource]:
    """One a name: the current incarnation, or the one that is going while there is no other."""
    by_name: dict[str, Resource] = {}
    for each in found:
        if each.current or each.name not in by_name:
            by_name[each.name] = each
    return list(by_name.values())


def _matches(call: Call, resource: Resource) -> bool:
    return all(read(resource) in call.query.getlist(name) for name, read in FILTERS.items() if name in call.query)


def _required_by(found: Sequence[Resource]) -> dict[str, list[str]]:
    required_by: dict[str, list[str]] = {}
    for each in found:
        for name in each.requires:
            required_by.setdefault(name, []).append(each.name)
    return required_by


def _waiting_for(found: Iterable[Resource]) -> list[str]:
    return [each.physical_id for each in found if each.status is Status.IN_PROGRESS and each.physical_id]


def _progress(resource: Resource, under_way: dict[str, tuple[str | None, str | None]]) -> dict[str, Any]:
    """Ours: what a live view shows of a run."""
    said = under_way.get(resource.physical_id or "")
    return {} if said is None else {"deployment": {"status_reason": said[0], "last_log": said[1]}}


def _detail(tx: Tx, call: Call, stack: Stack, resource: Resource) -> dict[str, Any]:
    return {
        "description": resource.definition.get("description") or "",
        "attributes": all_attributes(look_at(tx, call.services.engine, stack), resource),
    }
