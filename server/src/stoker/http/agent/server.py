"""/agent/v1/server: the server of the agent that sends the request."""

from __future__ import annotations

from typing import Any, Literal

from stoker.deployments import server_runs
from stoker.http.contracts import operation
from stoker.http.request import RequestContext
from stoker.model.audit import Decision, Outcome
from stoker.model.errors import Unauthorized
from stoker.policy import authorizer
from stoker.servers import enrollment
from stoker.store import servers
from stoker.store.tx import Tx

_DELETED, _LEFT = "DELETED", "LEFT"


@operation(200, {"status": Literal["DELETED", "LEFT"]}, errors=(409,))
def leave(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """
    Revoke the key, because the agent is removed from its machine. Unfinished deployments fail.

    The server is deleted unless a stack owns or represents it.
    """
    server = servers.find(tx, request.server, for_update=True)
    if server is None:
        raise Unauthorized("This key is not valid, or has been revoked.")
    server_runs.release_server(tx, request.app.work, server.id, server.name)
    status = _DELETED if enrollment.leave(tx, server) else _LEFT
    decision = Decision(
        project_id=server.project_id,
        actor=f"the agent of {server.name}",
        action="leave",
        outcome=Outcome.ALLOWED,
        reason="The agent was removed from its machine",
        server_id=server.id,
        server_name=server.name,
    )
    authorizer.record(tx, decision)
    return {"status": status}
