"""Trusts of stacks that need a cloud, created with the token of the request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from stoker.http.request_context import RequestContext
from stoker.stacks.templates.outline import OutlinedResource
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store import delegations
from stoker.store.tx import Tx

T = TypeVar("T")


def with_trust(
    request: RequestContext, resolved: ResolvedStack, stack_id: str, do: Callable[[Tx], T]
) -> Callable[[Tx], T]:
    """
    Return ``do``, which also stores the trust of the stack if the stack needs one.

    Creates the trust at Keystone, outside of a transaction. Raises Forbidden or Unavailable.
    """
    trusts = request.app.trusts
    if trusts is None or not needs_cloud(resolved.outline):
        return do
    delegation = trusts.delegate(request.raw.headers["X-Auth-Token"], request.user, request.project, stack_id)
    if delegation is None:
        return do

    def with_delegation(tx: Tx) -> T:
        delegations.replace(tx, delegation)
        return do(tx)

    return with_delegation


def needs_cloud(resources: Mapping[str, OutlinedResource]) -> bool:
    """Return whether a resource, or one nested in it, is an object of a cloud."""
    return any(
        resource.type.needs_cloud or (resource.inside is not None and needs_cloud(resource.inside.resources))
        for resource in resources.values()
    )
