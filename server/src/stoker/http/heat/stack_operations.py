"""The operations of stacks: transactions that begin them; /v1/{project}/stacks/{name}/{id}/actions and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from stoker.http import audit_trail
from stoker.http.contracts import Answer, Body, Id, Name, Time, fill, operation
from stoker.http.heat import stack_lookup
from stoker.http.request import RequestContext, Response
from stoker.model.errors import Conflict, Invalid
from stoker.model.stack import Action, Snapshot, Stack, Status
from stoker.stacks import export, operations
from stoker.stacks.engine import Engine
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store import resources, stacks
from stoker.store.tx import Tx
from stoker.types.planned_runs import Planner

#: The header with the id of the operation that a request has begun (Stoker's own).
OPERATION = "Stoker-Operation"
_ACTIONS: Mapping[str, Callable[[Tx, Engine, str], Stack]] = {
    "suspend": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.SUSPEND),
    "resume": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.RESUME),
    "check": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.CHECK),
    "cancel_update": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=True),
    "cancel_without_rollback": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=False),
}
#: The others cancel an operation.
_PLAIN = ("suspend", "resume", "check")
#: An object with the name of one action. Heat's clients send any value with it.
_SCHEMA = {
    "type": "object",
    "properties": {name: {} for name in _ACTIONS},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
_StackAction = Annotated[dict[str, Any], Meta(extra_json_schema=_SCHEMA)]


def operation_header(stack: Stack) -> dict[str, str]:
    """
    Return the header with the id of the stack's operation, which is the id of the operation's first event.

    Clients find the events of their own operation by it. If the operation failed in the same transaction and is rolled
    back, the header has the id of the rollback.
    """
    return {OPERATION: stack.traversal}


def begin(request: RequestContext, resolved: ResolvedStack, action: str, do: Callable[[Tx], Stack]) -> Stack:
    """
    Begin an operation with a prepared template in a transaction, with ``action`` in the audit log.

    Raises Forbidden and Unavailable.
    """
    types = [resource.type for resource in resolved.outline.list_all()]
    return _write(
        request,
        resolved.identity.stack_id,
        action,
        do,
        is_large=len(resolved.definitions) > operations.LARGE,
        acts_for_owner=any(kind.needs_provider or kind.acts_for_owner for kind in types),
    )


def refuse_other_plan(tx: Tx, request: RequestContext, resolved: ResolvedStack, plan: str) -> None:
    """
    Raise Conflict if an update would not do what a preview shows.

    ``plan``: the digest of the preview.
    """
    stack = stacks.get(tx, resolved.identity.stack_id, for_update=True)
    if Planner(tx, request.app.engine, stack, resolved, exists=True).digest != plan:
        raise Conflict(
            f"The plan {plan:.64} is out of date: the stack or its servers have changed, or the request differs from "
            "that of the preview. Preview the update again."
        )


def delete(request: RequestContext) -> Stack:
    """
    Start the deletion of the path's stack; see ``operations.delete``. Raises Forbidden and Unavailable.

    If Stoker may not act for the stack's owner any more, it acts for the caller.
    """
    engine, delegations = request.app.engine, request.app.provider.delegations
    acting = [name for name, kind in engine.types.items() if kind.acts_for_owner]
    with request.read() as tx:
        stack = stack_lookup.root_stack(tx, request)
        is_large = resources.are_many(tx, stack.id, operations.LARGE)
        acts_for_owner = delegations is not None and (
            delegations.is_needed(tx, stack.id) or resources.any_of_types(tx, stack.id, acting)
        )
    return _write(
        request,
        stack.id,
        "delete stack",
        lambda tx: operations.delete(tx, engine, stack.id),
        is_large=is_large,
        acts_for_owner=acts_for_owner,
    )


def _write(
    request: RequestContext,
    stack_id: str,
    action: str,
    do: Callable[[Tx], Stack],
    *,
    is_large: bool,
    acts_for_owner: bool,
) -> Stack:
    """Write the transaction. If Stoker acts for the stack's owner, the stack gets a delegation of the caller."""
    delegations = request.app.provider.delegations if acts_for_owner else None
    delegation = delegations.delegate(request.token, request.project, stack_id) if delegations is not None else None

    def do_and_record(tx: Tx) -> Stack:
        if delegations is not None and delegation is not None:
            delegations.confirm(tx, delegation)
        stack = do(tx)
        request.subject.stack_id, request.subject.stack_name = stack.id, stack.name
        audit_trail.record(tx, request, action)
        return stack

    try:
        return request.write(do_and_record, background=is_large)
    except Exception:
        if delegations is not None and delegation is not None:
            delegations.discard(delegation)
        raise


@operation(200, type(None), errors=(409,), headers=(OPERATION,), example={"check": None})
def act(request: RequestContext, tx: Tx, body: _StackAction) -> Response:
    """
    Run the action that the only member of the body names: suspend, resume or check a stack, or cancel its update.

    Raises Invalid, EntityNotFound or NotSupported.
    """
    names = list(body)
    if len(names) != 1:
        raise Invalid(f"one action is needed, not {len(names)}: {', '.join(_ACTIONS)}")
    do = _ACTIONS.get(names[0])
    if do is None:
        raise Invalid(f"Invalid action {names[0]}: known are {', '.join(_ACTIONS)}")
    stack = stack_lookup.root_stack(tx, request)
    audit_trail.record(tx, request, f"{names[0]} stack" if names[0] in _PLAIN else "cancel stack")
    return Response(200, b"null", operation_header(do(tx, request.app.engine, stack.id)))


class NewSnapshot(Body):
    name: Name | None = None


class StackSnapshot(Answer):
    id: Id
    name: str | None
    action: Literal["SNAPSHOT"]
    status: Status
    reason: str = field(name="status_reason")
    data: dict[str, Any]
    created_at: Time = field(name="creation_time")


@operation(200, StackSnapshot, errors=(409,), body_optional=True)
def create_snapshot(request: RequestContext, tx: Tx, body: NewSnapshot) -> StackSnapshot:
    """Take a snapshot of the stack. Raises ActionInProgress, NotSupported or Invalid."""
    stack = stack_lookup.root_stack(tx, request)
    return _serialize(export.take_snapshot(tx, request.app.engine, stack.id, body.name))


@operation(200, {"snapshots": list[StackSnapshot]})
def index_snapshots(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the snapshots of a stack."""
    page = stacks.list_snapshots(tx, stack_lookup.stack(tx, request).id)
    return {"snapshots": [_serialize(snapshot) for snapshot in page]}


@operation(200, {"snapshot": StackSnapshot})
def show_snapshot(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return a snapshot."""
    return {"snapshot": _serialize(_find_snapshot(tx, request))}


@operation(204, errors=(409,))
def delete_snapshot(request: RequestContext, tx: Tx) -> None:
    """Delete a snapshot. Raises ActionInProgress if clouds have saved resources and the stack is busy."""
    export.delete_snapshot(tx, request.app.engine, _find_snapshot(tx, request))


@operation(202, errors=(409,), headers=(OPERATION,))
def restore_snapshot(request: RequestContext, tx: Tx) -> Response:
    """Update the stack to the state of the snapshot. Raises NotSupported."""
    stack = stack_lookup.stack(tx, request, live=True)
    restored = export.restore_snapshot(tx, request.app.engine, stack.id, _find_snapshot(tx, request))
    return Response(202, headers=operation_header(restored))


def _find_snapshot(tx: Tx, request: RequestContext) -> Snapshot:
    return stacks.get_snapshot(tx, stack_lookup.stack(tx, request).id, request.path["snapshot_id"])


def _serialize(snapshot: Snapshot) -> StackSnapshot:
    data = {name: part for name, part in snapshot.data.items() if name != "source"}
    return fill(StackSnapshot, snapshot, action="SNAPSHOT", data=data)
