"""/agent/v1/refusals: an agent refused a document that came through an object store or a messaging service."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import NO_NUL, Body
from stoker.http.request import RequestContext, Response
from stoker.model.audit import Decision, Outcome
from stoker.model.errors import Unauthorized
from stoker.policy import authorizer
from stoker.store import servers
from stoker.store.tx import Tx
from stoker.types import publishing


class DocumentRefusal(Body):
    """``source`` is the section of the agent's configuration for the service that delivered the document."""

    source: Annotated[str, Meta(max_length=32, pattern=NO_NUL)] | None = None
    reason: Annotated[str, Meta(max_length=500, pattern=NO_NUL)] | None = None


@operation(204)
def create(request: RequestContext, body: DocumentRefusal) -> Response:
    """Record the refusal in the audit log, and publish the document again to replace the refused one."""
    source, reason = body.source or "?", body.reason or ""

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
