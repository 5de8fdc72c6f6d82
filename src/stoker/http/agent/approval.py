"""/agent/v1/approval: an agent waits until a user approves its server."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Query, Whole
from stoker.http.request_context import RequestContext, Response
from stoker.model.server import AgentAccess
from stoker.servers.keys import key_topic
from stoker.store import servers

_LONGEST_WAIT = 60


class ApprovalQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds to wait for the approval, at most 60")] = 0


class Approval(Answer):
    status: Literal["APPROVED", "PENDING_APPROVAL"]


@operation(200, Approval)
async def poll(request: RequestContext, query: ApprovalQuery) -> Response:
    """Return whether the server is approved, at the latest after the wait."""
    # Runs on the event loop. The waiter is registered before the read, so that no approval is missed.
    until = time.monotonic() + min(query.wait, _LONGEST_WAIT)
    while True:
        with request.app.waiters.register(key_topic(request.server)) as waiter:
            await request.authorize_again()  # a rejected server has no key any more
            is_pending = await request.in_thread(_is_pending, request)
            left = until - time.monotonic()
            if not is_pending or left <= 0 or request.app.waiters.closed:
                return Response(200, Approval(status="PENDING_APPROVAL" if is_pending else "APPROVED"))
            await waiter.wait(left)


def _is_pending(request: RequestContext) -> bool:
    with request.app.store.read() as tx:
        server = servers.find(tx, request.server)
    return server is not None and server.agent_access is AgentAccess.PENDING_APPROVAL
