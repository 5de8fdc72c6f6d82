"""Approval of servers that enrolled with a token for many machines, and of names that they chose."""

from __future__ import annotations

from msgspec.structs import replace

from stoker.model.errors import Conflict
from stoker.model.server import AgentAccess, Server
from stoker.servers.keys import key_topic
from stoker.store import servers
from stoker.store.tx import Tx


def require_pending(server: Server) -> None:
    """Raise Conflict if the server does not wait for approval."""
    if server.agent_access is not AgentAccess.PENDING_APPROVAL:
        raise Conflict(f"Server {server.name!r} does not wait for approval.")


def approve(tx: Tx, server: Server, ref: str) -> Server:
    """
    Let the server's agent use its key. Return the server.

    ``ref`` is how the user refers to the server. If it is the server's name, stacks may use the name from now on.
    Raises Conflict if there is nothing to approve.
    """
    confirms = server.is_self_named and ref == server.name
    if not confirms:
        require_pending(server)
    if confirms:
        servers.change(tx, server.id, is_self_named=False)
        server = replace(server, is_self_named=False)
    if server.agent_access is AgentAccess.PENDING_APPROVAL:
        servers.change(tx, server.id, agent_access=AgentAccess.ALLOWED)
        tx.notify(key_topic(server.id))  # wakes the agent, which waits for this
        server = replace(server, agent_access=AgentAccess.ALLOWED)
    return server
