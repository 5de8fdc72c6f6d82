"""Finds the stack of a URL, and redirects to a stack's canonical URL."""

from __future__ import annotations

import re

from stoker.http.contracts import Link, operation
from stoker.http.heat.serializers import stack_url
from stoker.http.request import RequestContext, Response
from stoker.model.errors import EntityNotFound, NotSupported
from stoker.model.stack import Stack
from stoker.store import resources, stacks
from stoker.store.tx import Tx

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def stack(tx: Tx, request: RequestContext, *, live: bool = False) -> Stack:
    """
    Return the stack of a ``/stacks/{name}/{id}`` URL.

    Raises EntityNotFound; with ``live`` also if the stack is deleted.
    """
    name, id = request.path["stack_name"], request.path["stack_id"]
    existing = stacks.find(tx, id)
    if existing is None or existing.project_id != request.project or existing.name != name:
        raise EntityNotFound.of("Stack", f"{name}/{id}")
    if live and existing.deleted_at is not None:
        raise EntityNotFound.of("Stack", f"{name}/{id}")
    return existing


def within(tx: Tx, top: Stack, depth: int) -> list[Stack]:
    """Return the stack and its nested stacks, ``depth`` levels down."""
    if depth == 0:
        return [top]
    return [stack for stack in stacks.tree(tx, top.id) if stack.depth - top.depth <= depth]


def root_stack(tx: Tx, request: RequestContext) -> Stack:
    """Return the live stack. Raises NotSupported for a nested stack, which is managed through its parent stack."""
    root = stack(tx, request, live=True)
    if root.parent_id is not None:
        raise NotSupported(
            f"Stack {root.name} is nested, the resource {root.parent_resource} of another: "
            "do this to the stack it lives in."
        )
    return root


def _find_named(tx: Tx, request: RequestContext) -> Stack:
    """
    Return the stack that the path names by name or id; for the user of a resource, only the stack of that resource.

    Raises EntityNotFound.
    """
    named, own_id = request.path["stack_name"], request.caller.resource
    stack = stacks.find(tx, named) if _UUID.fullmatch(named) else None
    if stack is None or stack.project_id != request.project:
        stack = stacks.find_by_name(tx, named, request.project)
    own = resources.find(tx, own_id) if own_id is not None else None
    if stack is None or (own_id is not None and (own is None or own.stack_id != stack.id)):
        raise EntityNotFound.of("Stack", named)
    return stack


@operation(302, {"stack": {"links": list[Link]}}, headers=("Location",))
def redirect(request: RequestContext) -> Response:
    """
    Redirect from a stack's name or id to the canonical URL, and keep the rest of the path and the query.

    Clients repeat the request there with the same method.
    """
    with request.read() as tx:
        target = _find_named(tx, request)
    rest = "".join(f"/{segment}" for segment in request.raw.url.path.split("/")[5:])
    query = f"?{request.raw.url.query}" if request.raw.url.query else ""
    location = f"{stack_url(request.app.settings.public_url, target)}{rest}{query}"
    return Response(302, {"stack": {"links": [Link(location, "self")]}}, {"Location": location})
