"""/agent/v1/approval: an agent waits until a user approves its server."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Query, Whole
from stoker.http.hold import hold
from stoker.http.request import RequestContext, Response
from stoker.model.server import AgentAccess
from stoker.servers.keys import key_topic
from stoker.store import servers

LONGEST_WAIT = 60


class ApprovalQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds to wait for the approval, at most 60")] = 0


class Approval(Answer):
    status: Literal["APPROVED", "PENDING_APPROVAL"]


@operation(200, Approval)
async def poll(request: RequestContext, query: ApprovalQuery) -> Response:
    """Return whether the server is approved, at the latest after the wait."""

    async def read() -> tuple[bool, bool]:
        is_pending = await request.in_thread(_is_pending, request)
        return is_pending, not is_pending

    # A rejected server has no key any more.
    is_pending = await hold(request, key_topic(request.server), min(query.wait, LONGEST_WAIT), read)
    return Response(200, Approval(status="PENDING_APPROVAL" if is_pending else "APPROVED"))


def _is_pending(request: RequestContext) -> bool:
    with request.app.store.read() as tx:
        server = servers.find(tx, request.server)
    return server is not None and server.agent_access is AgentAccess.PENDING_APPROVAL
