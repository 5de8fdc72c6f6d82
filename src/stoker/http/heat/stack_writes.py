"""The transactions of requests that create, update and delete stacks, of Heat's API and of CloudFormation's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from stoker.http.request_context import RequestContext
from stoker.model.stack import Stack
from stoker.stacks import operations
from stoker.stacks.imported_objects import ImportedObjects
from stoker.stacks.operations import Options
from stoker.stacks.templates.outline import OutlinedResource
from stoker.stacks.templates.prepare import Identity, ResolvedStack
from stoker.store import cloud_objects, resources
from stoker.store.tx import Tx

T = TypeVar("T")


def create(
    request: RequestContext,
    identity: Identity,
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
            identity,
            username=request.user.user_name,
            adopt=adopt,
            imported=imported,
        )

    return _write_resolved(request, resolved, identity.stack_id, do)


def update(request: RequestContext, stack: Stack, resolved: ResolvedStack, options: Options) -> None:
    """Update a stack; see ``operations.update``. Raises Forbidden and Unavailable."""
    _write_resolved(
        request, resolved, stack.id, lambda tx: operations.update(tx, request.app.engine, stack.id, resolved, options)
    )


def delete(request: RequestContext, stack: Stack) -> None:
    """
    Start the deletion of a stack; see ``operations.delete``. Raises Forbidden and Unavailable.

    If Stoker may not act for the stack's owner any more, it acts for the caller.
    """
    with request.app.store.read() as tx:
        is_large = resources.are_many(tx, stack.id, operations.LARGE)
        acting = [name for name, kind in request.app.engine.types.items() if kind.acts_for_owner]
        is_delegated = cloud_objects.any_of_root(tx, stack.id) or resources.any_of_types(tx, stack.id, acting)
    _write(
        request,
        stack.id,
        lambda tx: operations.delete(tx, request.app.engine, stack.id),
        is_large=is_large,
        is_delegated=is_delegated,
    )


def needs_delegation(resources: Mapping[str, OutlinedResource]) -> bool:
    """Return whether Stoker acts for the owner of the stack: for an object of a cloud, or for another stack."""
    return any(
        resource.type.needs_cloud
        or resource.type.acts_for_owner
        or (resource.inside is not None and needs_delegation(resource.inside.resources))
        for resource in resources.values()
    )


def _write_resolved(request: RequestContext, resolved: ResolvedStack, stack_id: str, do: Callable[[Tx], T]) -> T:
    is_large = len(resolved.definitions) > operations.LARGE
    return _write(request, stack_id, do, is_large=is_large, is_delegated=needs_delegation(resolved.outline))


def _write(request: RequestContext, stack_id: str, do: Callable[[Tx], T], *, is_large: bool, is_delegated: bool) -> T:
    """Write a transaction that begins an operation. The stack gets a delegation of the caller if it needs one."""
    app = request.app
    delegation = None
    if app.delegations is not None and is_delegated:
        delegation = app.delegations.delegate(request.token, request.project, stack_id)
    if app.delegations is None or delegation is None:
        return app.store.write(do, background=is_large)
    confirm, new = app.delegations.confirm, delegation

    def with_delegation(tx: Tx) -> T:
        confirm(tx, new)
        return do(tx)

    try:
        return app.store.write(with_delegation, background=is_large)
    except Exception:
        app.delegations.discard(new)
        raise
