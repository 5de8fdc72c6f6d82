"""
/agent/v1/document: the configs that a server has to run.

A request waits up to ``wait`` seconds (at most 60) for a change of the document.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta

from stoker.deployments.documents import Document
from stoker.http.contracts import Absent, Answer, Count, Id, Query, Whole, operation
from stoker.http.heat.configs import SoftwareConfig
from stoker.http.hold import hold
from stoker.http.request import RequestContext, Response, matches_tag
from stoker.model.deployment import OWN_CHANNEL
from stoker.servers.presence import parse_header
from stoker.store.notifier import server_topic

LONGEST_WAIT = 60
#: The answer to a poll that another one of its server has superseded. Without the pause of 10 seconds, two machines
#: with one key, such as clones, would continuously end each other's polls.
SUPERSEDED = Response(304, headers={"Retry-After": "10"})


class AgentRun(SoftwareConfig):
    """A derived config to run. An agent stops the run if ``cancel`` is true."""

    deployment_id: Id
    trigger_id: Annotated[Id, Meta(description="The trigger that started the run")] | Absent = UNSET
    mode: Annotated[str, Meta(description="preview or undo; without it, the agent applies the config")] | Absent = UNSET
    cancel: bool | Absent = UNSET


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
    checks: list[AgentCheck] | Absent = UNSET


class DocumentQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds to wait for a change, at most 60")] = 0


@operation(200, AgentDocument, has_etag=True)
async def poll(request: RequestContext, query: DocumentQuery) -> Response:
    """Return the server's document, or 304 if it still is that of If-None-Match after the wait."""
    # Runs on the event loop.
    server_id, documents = request.server, request.app.documents
    tag, agent = request.raw.headers.get("if-none-match"), request.raw.headers.get("x-stoker-agent", "")
    with_modes = bool(parse_header(agent)[2])
    document: Document
    #: Of the document that the agent has. A change that leaves it as it is, such as the deletion of a
    #: deployment whose run has ended, does not end the wait.
    content: int | None = None

    async def read() -> tuple[Response, bool]:
        nonlocal document, content
        # An agent that knows what has ended gets the document after its wait, as if it had polled before its report.
        outdated_tag = tag if query.wait and content is None else None
        cached = documents.agent(server_id, with_modes=with_modes, tag=outdated_tag)
        document = cached or await request.app.agent_batches.documents.submit((server_id, with_modes))
        headers = {"ETag": document.etag}
        if tag is None or not (
            tag == document.etag or document.content == content or matches_tag(tag, str(document.revision))
        ):
            return Response(200, document.body, headers), True
        content = document.content
        documents.record_receipt(document)
        return Response(304, headers=headers), False

    if request.app.servers.last_seen.observe(server_id, agent):
        await request.app.agent_batches.heartbeats.submit((server_id, agent))
    response = await hold(request, server_topic(server_id), min(query.wait, LONGEST_WAIT), read, SUPERSEDED)
    if response.status == 200:
        documents.record_sent(document, OWN_CHANNEL)
    return response
