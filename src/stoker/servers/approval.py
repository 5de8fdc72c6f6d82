"""Approval of servers that enrolled with a token for many machines."""

from __future__ import annotations

from dataclasses import replace

from stoker.model.errors import Conflict
from stoker.model.server import AgentAccess, Server
from stoker.servers.keys import key_topic
from stoker.store import servers
from stoker.store.tx import Tx


def require_pending(server: Server) -> None:
    """Raise Conflict if the server does not wait for approval."""
    if server.agent_access is not AgentAccess.PENDING_APPROVAL:
        raise Conflict(f"Server {server.name!r} does not wait for approval.")


def approve(tx: Tx, server: Server) -> Server:
    """Let the server's agent use its key. Return the server. Raises Conflict."""
    require_pending(server)
    servers.set_agent_access(tx, server, AgentAccess.ALLOWED)
    tx.notify(key_topic(server.id))  # wakes the agent, which waits for this
    return replace(server, agent_access=AgentAccess.ALLOWED)
