"""Which stack a URL means, and the way to its canonical URL."""

from __future__ import annotations

import re

from stoker.http.call import Call, Reply
from stoker.http.heat.shapes import Links
from stoker.model.errors import EntityNotFound, NotSupported
from stoker.model.stack import Stack
from stoker.store import stacks
from stoker.store.tx import Tx

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def stack(tx: Tx, call: Call, *, live: bool = False) -> Stack:
    """The stack of a ``/stacks/{name}/{id}`` URL. Raises EntityNotFound; with ``live`` also for deleted ones."""
    name, id = call.path["stack_name"], call.path["stack_id"]
    found = stacks.find(tx, id)
    if found is None or found.project_id != call.project or found.name != name:
        raise EntityNotFound.of("Stack", f"{name}/{id}")
    if live and found.deleted_at is not None:
        raise EntityNotFound.of("Stack", f"{name}/{id}")
    return found


def within(tx: Tx, top: Stack, depth: int) -> list[Stack]:
    """The stack and those nested in it, so many levels down; no more than there can be."""
    if depth == 0:
        return [top]
    return [each for each in stacks.tree(tx, top.id) if each.depth - top.depth <= depth]


def refuse_nested(found: Stack) -> None:
    """Raises NotSupported: what a nested stack is follows from the stack it lives in."""
    if found.parent_id is not None:
        raise NotSupported(
            f"Stack {found.name} is nested, the resource {found.parent_resource} of another: "
            "do this to the stack it lives in."
        )


def redirect(call: Call) -> Reply:
    """302 from a name or an id to the canonical URL, whatever follows it kept. Clients send the same verb there."""
    named = call.path["stack_name"]
    with call.services.store.read() as tx:
        found = _by_id(tx, call, named) or stacks.named(tx, named, call.project)
    if found is None:
        raise EntityNotFound.of("Stack", named)
    rest = "".join(f"/{segment}" for segment in call.request.url.path.split("/")[5:])
    query = f"?{call.request.url.query}" if call.request.url.query else ""
    location = f"{links(call).stack(found)}{rest}{query}"
    return Reply(302, {"stack": {"links": [{"href": location, "rel": "self"}]}}, {"Location": location})


def links(call: Call) -> Links:
    return Links(call.services.settings.public_url, call.project)


def _by_id(tx: Tx, call: Call, id: str) -> Stack | None:
    found = stacks.find(tx, id) if _UUID.fullmatch(id) else None
    return found if found is not None and found.project_id == call.project else None
