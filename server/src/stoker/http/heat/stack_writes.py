"""The transactions of requests that create, update and delete stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.http import audit_trail
from stoker.http.app import App
from stoker.http.request import RequestContext
from stoker.model.errors import Conflict
from stoker.model.stack import Stack
from stoker.stacks import operations
from stoker.stacks.adoption import ImportedObjects
from stoker.stacks.operations import Options
from stoker.stacks.templates.outline import Outline
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store import resources, stacks
from stoker.store.tx import Tx
from stoker.types.planned_runs import Planner


def create(
    request: RequestContext,
    resolved: ResolvedStack,
    options: Options,
    *,
    adopt: Mapping[str, Any] | None = None,
    imported: ImportedObjects | None = None,
) -> Stack:
    """Create a stack as the caller; see ``operations.create``. Raises Forbidden and Unavailable."""

    def do(tx: Tx) -> Stack:
        return operations.create(
            tx,
            request.app.engine,
            resolved,
            options,
            username=request.user.user_name,
            adopt=adopt,
            imported=imported,
        )

    return _write_resolved(request, resolved, do, "create stack" if adopt is None else "adopt stack")


def update(request: RequestContext, resolved: ResolvedStack, options: Options, plan: str | None) -> Stack:
    """
    Update a stack; see ``operations.update``.

    ``plan``: the digest of a preview, or None. Raises Conflict if the update would not do what the preview shows,
    Forbidden and Unavailable.
    """

    def do(tx: Tx) -> Stack:
        if plan is not None:
            _refuse_other_plan(tx, request.app, resolved, plan)
        return operations.update(tx, request.app.engine, resolved, options)

    return _write_resolved(request, resolved, do, "update stack")


def _refuse_other_plan(tx: Tx, app: App, resolved: ResolvedStack, plan: str) -> None:
    stack = stacks.get(tx, resolved.identity.stack_id, for_update=True)
    if Planner(tx, app.engine, stack, resolved, exists=True).digest != plan:
        raise Conflict(
            f"The plan {plan:.64} is out of date: the stack or its servers have changed, or the request differs from "
            "that of the preview. Preview the update again."
        )


def delete(request: RequestContext, stack: Stack) -> Stack:
    """
    Start the deletion of a stack; see ``operations.delete``. Raises Forbidden and Unavailable.

    If Stoker may not act for the stack's owner any more, it acts for the caller.
    """
    with request.read() as tx:
        is_large = resources.are_many(tx, stack.id, operations.LARGE)
        is_delegated = _acts_for_owner(tx, request.app, stack)
    return _write(
        request,
        stack.id,
        lambda tx: operations.delete(tx, request.app.engine, stack.id),
        "delete stack",
        is_large=is_large,
        is_delegated=is_delegated,
    )


def _needs_delegation(outline: Outline) -> bool:
    """Return whether Stoker acts for the owner of the stack: for an object of a cloud, or for another stack."""
    return any(resource.type.needs_provider or resource.type.acts_for_owner for resource in outline.list_all())


def _acts_for_owner(tx: Tx, app: App, stack: Stack) -> bool:
    """Return whether Stoker acts for the owner of the existing stack."""
    delegations = app.provider.delegations
    if delegations is None:
        return False
    acting = [name for name, kind in app.engine.types.items() if kind.acts_for_owner]
    return delegations.is_needed(tx, stack.id) or resources.any_of_types(tx, stack.id, acting)


def _write_resolved(request: RequestContext, resolved: ResolvedStack, do: Callable[[Tx], Stack], action: str) -> Stack:
    is_large, is_delegated = len(resolved.definitions) > operations.LARGE, _needs_delegation(resolved.outline)
    return _write(request, resolved.identity.stack_id, do, action, is_large=is_large, is_delegated=is_delegated)


def _write(
    request: RequestContext,
    stack_id: str,
    begin: Callable[[Tx], Stack],
    action: str,
    *,
    is_large: bool,
    is_delegated: bool,
) -> Stack:
    """
    Write a transaction that begins an operation, with ``action`` in the audit log.

    The stack gets a delegation of the caller if it needs one.
    """
    delegations = request.app.provider.delegations
    delegation = None

    def do(tx: Tx) -> Stack:
        stack = begin(tx)
        request.subject.stack_id, request.subject.stack_name = stack.id, stack.name
        audit_trail.record(tx, request, action)
        return stack

    if delegations is not None and is_delegated:
        delegation = delegations.delegate(request.token, request.project, stack_id)
    if delegations is None or delegation is None:
        return request.write(do, background=is_large)
    confirm, new = delegations.confirm, delegation

    def with_delegation(tx: Tx) -> Stack:
        confirm(tx, new)
        return do(tx)

    try:
        return request.write(with_delegation, background=is_large)
    except Exception:
        delegations.discard(new)
        raise
