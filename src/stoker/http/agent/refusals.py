"""/agent/v1/refusals: an agent refused a document that came through an object store or a messaging service."""

from __future__ import annotations

from stoker.http import params
from stoker.http.request_context import RequestContext, Response
from stoker.model.audit import Decision, Outcome
from stoker.model.errors import Unauthorized
from stoker.policy import authorizer
from stoker.stacks import publishing
from stoker.store import servers
from stoker.store.tx import Tx

#: Maximum lengths, in characters.
_LONGEST_SOURCE, _LONGEST_REASON = 32, 500


def create(request: RequestContext) -> Response:
    """Record the refusal in the audit log, and publish the document again to replace the refused one."""
    body = params.body(request)
    source = params.text(body.get("source"), "source", _LONGEST_SOURCE) or "?"
    reason = params.text(body.get("reason"), "reason", _LONGEST_REASON) or ""

    def record(tx: Tx) -> None:
        server = servers.find(tx, request.server)
        if server is None:
            raise Unauthorized("This key is not valid, or has been revoked.")
        authorizer.record(
            tx,
            Decision(
                project_id=server.project_id,
                actor=f"the agent of {server.name}",
                action=f"take a document from {source}",
                outcome=Outcome.REFUSED,
                reason=f"The agent refused a document: {reason}",
                server_id=server.id,
            ),
        )
        publishing.publish_again(tx, request.app.engine, server.id)

    request.app.store.write(record)
    return Response(204)
