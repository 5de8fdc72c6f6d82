"""
/relay/v1/polls: one request waits for the documents of many agents.

The request has everything that the answer depends on, so any process can answer it. It answers as soon as the document
of one agent differs from that agent's ETag, with all changed documents.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from stoker.deployments.documents import Document
from stoker.http import errors, etags
from stoker.http.agent.document import SUPERSEDED_SECONDS, AgentDocument
from stoker.http.contracts import operation
from stoker.http.fields import Absent, Answer, Body, Count, Query, RequiredShortText, Whole
from stoker.http.pending_polls import PendingPoll
from stoker.http.request_context import RequestContext, Response
from stoker.http.waiters import Waiter
from stoker.model.deployment import OWN_CHANNEL
from stoker.model.errors import Forbidden, Unauthorized
from stoker.servers.last_seen import parse_header
from stoker.servers.relays import relay_topic
from stoker.store.notifier import ALL, server_topic

#: Agents in one request. Their keys and headers fit into ``BODY_BYTES``.
MOST_AGENTS = 500
BODY_BYTES = 4 * 1024 * 1024
#: Bytes of documents in one answer; the next request gets the others.
_ANSWER_BYTES = 8 * 1024 * 1024
#: Heartbeats in one transaction.
_HEARTBEATS = 100


class RelayedPoll(Body):
    """The poll of one agent: its key, the ETag of the document that it has, and its header X-Stoker-Agent."""

    key: Annotated[str, Meta(min_length=1, max_length=255)]
    etag: Annotated[str, Meta(max_length=255)] | None = None
    agent: Annotated[str, Meta(max_length=8192)] = ""


class SharedPoll(Body):
    """The polls of a batch of agents. A new request of a relay for a batch ends the earlier one, without agents."""

    batch: RequiredShortText
    agents: Annotated[list[RelayedPoll], Meta(max_length=MOST_AGENTS)]


class SharedPollQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds to wait for a change, at most the interval of heartbeats")] = 0


class RelayedAnswer(Answer):
    """The answer to the poll number ``index``, as /agent/v1/document gives it."""

    index: Count
    status: int
    etag: str | Absent = UNSET
    document: AgentDocument | Absent = UNSET
    retry_after: int | Absent = UNSET
    error: Annotated[dict[str, Any], Meta(description="The body of an error")] | Absent = UNSET


class SharedAnswer(Answer):
    agents: list[RelayedAnswer]


class _RenderedAnswer(msgspec.Struct, omit_defaults=True):
    """A ``RelayedAnswer`` whose document is JSON already."""

    index: int
    status: int
    etag: str | Absent = UNSET
    document: msgspec.Raw | Absent = UNSET
    retry_after: int | Absent = UNSET
    error: Any = UNSET


@dataclass(slots=True)
class _Member:
    """An agent of the request, whose key is valid."""

    index: int
    server_id: str
    etag: str | None
    agent: str
    with_modes: bool
    poll: PendingPoll = field(default_factory=PendingPoll)


@operation(200, SharedAnswer)
async def poll(request: RequestContext, body: SharedPoll, query: SharedPollQuery) -> Response:
    """Return the documents that differ from the agents' ETags, at the latest after the wait."""
    # Runs on the event loop. The waiter is registered before the documents are read, so that no change is lost.
    wait = min(query.wait, request.app.settings.heartbeat_seconds)
    with request.app.shared_polls.add(f"{request.relay}/{body.batch}") as own:
        await _record_relay(request)
        members, answers = await _authenticate(request, body.agents)
        await _record_heartbeats(request, members)
        with _pending(request, members):
            return _response(await _wait(request, own, members, answers, time.monotonic() + wait))


async def _wait(
    request: RequestContext, own: PendingPoll, members: Sequence[_Member], answers: list[_RenderedAnswer], until: float
) -> list[_RenderedAnswer]:
    """Return the answers as soon as there is one, or at the time ``until`` (time.monotonic)."""
    by_topic = {server_topic(member.server_id): member for member in members}
    changed: Sequence[_Member] = members
    while True:
        with request.app.waiters.register(relay_topic(request.relay), *by_topic) as waiter:
            for pending in (own, *(member.poll for member in members)):
                pending.waiter = waiter
            if own.is_superseded:
                return []
            answers += await _compare(request, changed)
            answers += [_superseded(member) for member in members if member.poll.is_superseded]
            left = until - time.monotonic()
            if answers or left <= 0 or request.app.waiters.closed:
                return answers
            await waiter.wait(left)
            if own.is_superseded:
                return []
            changed = _woken(waiter, by_topic, members)
        await request.authorize_again()  # a deleted relay has no key any more


def _woken(waiter: Waiter, by_topic: dict[str, _Member], members: Sequence[_Member]) -> Sequence[_Member]:
    """Return the members whose documents may have changed."""
    topics = waiter.topics or ()
    if ALL in topics:
        return members
    return [by_topic[topic] for topic in topics if topic in by_topic]


async def _compare(request: RequestContext, members: Sequence[_Member]) -> list[_RenderedAnswer]:
    """Return the documents of the members that do not have them."""
    documents = request.app.documents
    current = {member.server_id: documents.agent(member.server_id, with_modes=member.with_modes) for member in members}
    missing = [member for member in members if current[member.server_id] is None]
    if missing:
        current.update(await request.in_thread(_load, request, missing))
    answers: list[_RenderedAnswer] = []
    size = 0
    for member in members:
        document = current[member.server_id]
        assert document is not None
        if member.etag is not None and etags.matches(member.etag, str(document.revision)):
            documents.record_receipt(document)
        elif size < _ANSWER_BYTES:
            size += len(document.body)
            documents.record_sent(document, OWN_CHANNEL)
            answers.append(_RenderedAnswer(member.index, 200, f'"{document.revision}"', msgspec.Raw(document.body)))
    return answers


def _load(request: RequestContext, members: Sequence[_Member]) -> dict[str, Document]:
    loaded = request.app.documents.load_agents([(member.server_id, member.with_modes) for member in members])
    return {member.server_id: document for member, document in zip(members, loaded, strict=True)}


async def _authenticate(
    request: RequestContext, polls: Sequence[RelayedPoll]
) -> tuple[list[_Member], list[_RenderedAnswer]]:
    """Return the members with valid keys, and the answers for the others. Of equal servers, the last one counts."""
    keys = request.app.servers.keys
    servers: dict[int, str] = {}
    unknown: dict[int, str] = {}
    for index, relayed in enumerate(polls):
        server_id = keys.get_cached(relayed.key)
        if server_id is None:
            unknown[index] = relayed.key
        else:
            servers[index] = server_id
    refused: list[_RenderedAnswer] = []
    if unknown:
        others, refused = await request.in_thread(_authenticate_unknown, request, unknown)
        servers |= others
    members = {}
    for index, server_id in servers.items():
        relayed = polls[index]
        with_modes = bool(parse_header(relayed.agent)[2])
        members[server_id] = _Member(index, server_id, relayed.etag, relayed.agent, with_modes)
    return list(members.values()), refused


def _authenticate_unknown(
    request: RequestContext, unknown: dict[int, str]
) -> tuple[dict[int, str], list[_RenderedAnswer]]:
    servers: dict[int, str] = {}
    refused: list[_RenderedAnswer] = []
    for index, key in unknown.items():
        try:
            servers[index] = request.app.servers.keys.authenticate(key, f"relay {request.relay}")
        except (Unauthorized, Forbidden) as error:
            response = errors.of(request.raw.scope["path"], error, request.app.settings.identity_url)
            refused.append(_RenderedAnswer(index, response.status, error=response.content))
    return servers, refused


async def _record_relay(request: RequestContext) -> None:
    relays = request.app.servers.relays
    if relays.is_due(request.relay):
        await request.in_thread(relays.record_seen, request.relay, request.raw.headers.get("user-agent", ""))


async def _record_heartbeats(request: RequestContext, members: Sequence[_Member]) -> None:
    last_seen = request.app.servers.last_seen
    due = [(member.server_id, member.agent) for member in members if last_seen.due(member.server_id, member.agent)]
    for start in range(0, len(due), _HEARTBEATS):
        await request.in_thread(last_seen.write_all, due[start : start + _HEARTBEATS])


@contextmanager
def _pending(request: RequestContext, members: Sequence[_Member]) -> Iterator[None]:
    """Supersede the members' earlier polls, and make theirs the pending ones until the block ends."""
    with ExitStack() as stack:
        for member in members:
            member.poll = stack.enter_context(request.app.pending_polls.add(member.server_id))
        yield


def _superseded(member: _Member) -> _RenderedAnswer:
    return _RenderedAnswer(member.index, 304, retry_after=SUPERSEDED_SECONDS)


def _response(answers: Sequence[_RenderedAnswer]) -> Response:
    return Response(200, msgspec.json.encode({"agents": answers}))
