"""
Abandons the source stack at the other Heat, so that the imported stack alone owns the objects.

The order makes an interrupted import safe to repeat: Stoker has adopted all objects and all agents have changed before
the other Heat forgets them, and nothing depends on the source stack afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stoker_client.collection import part
from stoker_client.errors import BadInput, NotFound, Refused, TimedOut
from stoker_migrate.heat_import.source_stack import SourceStack, poll, read_stack

if TYPE_CHECKING:
    from stoker_client.client import Client
    from stoker_client.wire import Wire


def find_refusals(wire: Wire) -> list[str]:
    """Return the reason why the other Heat abandons no stacks, if it has one. Asks for a stack that does not exist."""
    try:
        wire.send("DELETE", f"/stacks/none/{uuid4()}/abandon")
    except NotFound:
        return []
    except Refused as error:
        remedy = "set enable_stack_abandon = true in its heat.conf, or omit --abandon"
        return [f"the other Heat does not abandon stacks ({error}): {remedy}"]
    return []


def await_agents(client: Client, source: SourceStack, seconds: float) -> None:
    """
    Wait until Stoker has seen the agent of each server with deployments, for at most ``seconds``; 0: do not wait.

    Raises TimedOut with the servers whose agents still use the other Heat.
    """
    ids = {str(deployment["server_id"]) for deployment in source.deployments} if seconds else set()

    def unseen() -> list[str]:
        return sorted(id_ for id_ in ids if not client.servers.show(id_).get("last_seen"))

    try:
        poll(lambda: None if unseen() else True, seconds, pause=min(1.0, seconds))
    except TimedOut:
        raise TimedOut(
            f"the stack was not abandoned: the agents of these servers have not changed to Stoker within {seconds:g}"
            f" seconds: {', '.join(unseen())}. Repeat the command when they have, or with --agent-timeout 0 if the"
            " servers have no agents"
        ) from None


def abandon(wire: Wire, source: SourceStack) -> None:
    """
    Remove the source stack without its resources, and wait until it is gone.

    Raises BadInput if the stack's objects have changed since it was read, or if the removal fails.
    """
    name = source.stack["stack_name"]
    present = read_stack(wire, str(source.stack["id"]))
    if present.object_ids() != source.object_ids() or present.problems:
        raise BadInput(f"the stack {name} has changed at the other Heat since its import: it was not abandoned")
    wire.send("DELETE", f"{source.path}/abandon")
    final = poll(lambda: _final(wire, source.path))
    if final["stack_status"] != "DELETE_COMPLETE":
        raise BadInput(f"the other Heat could not abandon the stack {name}: {final['stack_status_reason']}")


def _final(wire: Wire, path: str) -> Mapping[str, Any] | None:
    try:
        stack: Mapping[str, Any] = part(wire.get(path), "stack")
    except NotFound:
        return {"stack_status": "DELETE_COMPLETE"}
    return stack if stack["stack_status"] in ("DELETE_COMPLETE", "DELETE_FAILED") else None
