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
from stoker.http.hold import PendingPoll, hold
from stoker.http.request import RequestContext, Response, matches_tag
from stoker.model.deployment import OWN_CHANNEL
from stoker.servers.presence import parse_header
from stoker.store.notifier import server_topic

LONGEST_WAIT = 60
#: Seconds that an agent waits after another poll of its server has superseded its own. Without this pause, two machines
#: with one key, such as clones, would continuously end each other's polls.
SUPERSEDED_SECONDS = 10


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
    #: The content of the document that the agent has. A change that leaves it as it is, such as the deletion of a
    #: deployment whose run has ended, does not end the wait.
    agents_content: int | None = None

    async def read() -> tuple[tuple[Document, Response], bool]:
        nonlocal agents_content
        document = documents.agent(server_id, with_modes=with_modes)
        # An agent that knows what has ended gets the document after its wait, as if it had polled before its report.
        may_wait = query.wait > 0 and agents_content is None
        if document is None or (document.is_outdated and not (may_wait and tag == f'"{document.revision}"')):
            document = await request.app.agent_batches.documents.submit((server_id, with_modes))
        own_tag = f'"{document.revision}"'
        if pending.is_superseded:
            headers = {"ETag": own_tag, "Retry-After": str(SUPERSEDED_SECONDS)}
            return (document, Response(304, headers=headers)), True
        if tag is None or not (
            tag == own_tag or matches_tag(tag, str(document.revision)) or document.content == agents_content
        ):
            return (document, Response(200, document.body, {"ETag": own_tag})), True
        agents_content = document.content
        documents.record_receipt(document)
        return (document, Response(304, headers={"ETag": own_tag})), False

    with PendingPoll(request.app.pending_polls, server_id) as pending:
        if request.app.servers.last_seen.observe(server_id, agent):
            await request.app.agent_batches.heartbeats.submit((server_id, agent))
        document, response = await hold(request, server_topic(server_id), min(query.wait, LONGEST_WAIT), read, pending)
    if response.status == 200:
        documents.record_sent(document, OWN_CHANNEL)
    return response
