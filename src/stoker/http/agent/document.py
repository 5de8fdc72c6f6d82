"""
/agent/v1/document: the configs that a server has to run.

A request waits up to ``wait`` seconds (at most 60) for a change of the document.
"""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import UNSET, Meta

from stoker.deployments.documents import Document
from stoker.http import etags
from stoker.http.contracts import Success, operation
from stoker.http.fields import Absent, Answer, Count, Id, Query, Whole
from stoker.http.heat.configs import SoftwareConfig
from stoker.http.request_context import RequestContext, Response
from stoker.model.deployment import OWN_CHANNEL
from stoker.servers.last_seen import parse_header
from stoker.store.notifier import server_topic

_LONGEST_WAIT = 60
#: Seconds that an agent waits after another poll of its server has superseded its own. Without this pause, two machines
#: with one key, such as clones, would continuously end each other's polls.
SUPERSEDED_SECONDS = 10


class AgentRun(SoftwareConfig):
    """A derived config to run. An agent stops the run if ``cancel`` is true."""

    deployment_id: Id
    mode: Annotated[str, Meta(description="preview or undo; without it, the agent applies the config")] | Absent = UNSET
    cancel: bool | Absent = UNSET


class OfferedProgram(Answer):
    """
    The program that the agent shall become. ``id`` is that of the upgrade.

    The agent returns to its old program if the new one does not reach Stoker within ``seconds``.
    """

    id: Id
    version: str
    sha256: str
    seconds: int
    signature: Annotated[str, Meta(description="HMAC-SHA256 with the key that signs the server's documents")]


class AgentCheck(SoftwareConfig):
    """A derived config whose effect the agent compares with the server, without a change."""

    deployment_id: Id
    interval: Annotated[int | None, Meta(description="Seconds between two checks; null: only the request")]
    requested: Annotated[int | None, Meta(description="The request to answer; the report repeats the number")]


class AgentDocument(Answer):
    server_id: Id
    revision: Count
    poll_wait: Annotated[int, Meta(description="Seconds that the next poll should wait")]
    concurrency: Annotated[int, Meta(description="Maximum number of runs at a time")]
    max_log_bytes: Annotated[int, Meta(description="Maximum bytes of a run's output that Stoker stores")]
    deployments: list[AgentRun]
    agent: OfferedProgram | Absent = UNSET
    checks: list[AgentCheck] | Absent = UNSET


class DocumentQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds to wait for a change, at most 60")] = 0


@operation(200, AgentDocument, headers=("ETag",), also={304: Success(headers=("ETag",))})
async def poll(request: RequestContext, query: DocumentQuery) -> Response:
    """Return the server's document, or 304 if its revision still equals If-None-Match after the wait."""
    # Runs on the event loop. The waiter is registered before the document is read, so that no change is lost.
    wait = min(query.wait, _LONGEST_WAIT)
    tag = request.raw.headers.get("if-none-match")
    with request.app.pending_polls.add(request.server) as pending:
        await _seen(request)
        until = time.monotonic() + wait
        while True:
            with request.app.waiters.register(server_topic(request.server)) as waiter:
                pending.waiter = waiter
                document = await _current(request)
                own_tag = f'"{document.revision}"'
                headers = {"ETag": own_tag}
                if pending.is_superseded:
                    return Response(304, headers={**headers, "Retry-After": str(SUPERSEDED_SECONDS)})
                if tag is None or (tag != own_tag and not etags.matches(tag, str(document.revision))):
                    # Another machine may have taken the server's place, and this document is for that machine.
                    await request.authorize_again()
                    request.app.documents.record_sent(document, OWN_CHANNEL)
                    return Response(200, document.body, headers)
                request.app.documents.record_receipt(document)
                left = until - time.monotonic()
                if left <= 0 or request.app.waiters.closed:
                    return Response(304, headers=headers)
                await waiter.wait(left, may_end_early=True)


async def _current(request: RequestContext) -> Document:
    documents = request.app.documents
    with_modes = bool(parse_header(_agent_header(request))[2])
    document = documents.agent(request.server, with_modes=with_modes)
    if document is not None:
        return document
    return await request.app.agent_batches.documents.submit((request.server, with_modes))


def _agent_header(request: RequestContext) -> str:
    return request.raw.headers.get("x-stoker-agent", "")


async def _seen(request: RequestContext) -> None:
    agent = _agent_header(request)
    if request.app.servers.last_seen.observe(request.server, agent):
        await request.app.agent_batches.heartbeats.submit((request.server, agent))
