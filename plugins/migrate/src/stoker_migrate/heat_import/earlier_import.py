"""Recognizes a stack that an earlier, interrupted import has created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker_client.errors import NotFound

if TYPE_CHECKING:
    from stoker_client.client import Client
    from stoker_client.shapes import Stack
    from stoker_migrate.heat_import.source_stack import SourceStack


def find_import(client: Client, name: str, source: SourceStack) -> str | None:
    """Return the ``name/id`` of the stack ``name`` if it has the same objects as ``source``, else None."""
    try:
        stack = client.stacks.show(name, outputs=False)
    except NotFound:
        return None
    ref = f"{stack['stack_name']}/{stack['id']}"
    walked = client.stacks.walk_resources(ref)
    ours = {name: entry["physical_resource_id"] for name, _, entry in walked if entry.get("physical_resource_id")}
    theirs = source.object_ids()
    common = theirs.keys() & ours.keys()
    # Heat gives associations of floating IPs numbers, which Stoker does not keep.
    is_import = common and all(theirs[path] == ours[path] or theirs[path].isdecimal() for path in common)
    return ref if is_import else None


def find_finished(client: Client, name: str) -> Stack | None:
    """Return the stack ``name`` if it has been adopted, else None."""
    try:
        stack = client.stacks.show(name)
    except NotFound:
        return None
    return stack if stack["stack_status"] == "ADOPT_COMPLETE" else None
