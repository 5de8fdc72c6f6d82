"""
/relay/v1/polls: one request waits for the documents of many agents.

The first request of a session has all agents, later ones only those that joined, left or polled again. A request
answers as soon as the document of one agent differs from that agent's ETag, with all changed documents. Afterwards the
session assumes that the agents have them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from stoker.deployments.documents import Document
from stoker.http import errors, etags
from stoker.http.agent.document import SUPERSEDED_SECONDS, AgentDocument
from stoker.http.contracts import operation
from stoker.http.fields import Absent, Answer, Body, Count, Query, RequiredShortText, Whole
from stoker.http.relay.sessions import Member, Session
from stoker.http.request_context import RequestContext, Response
from stoker.model.deployment import OWN_CHANNEL
from stoker.model.errors import StokerError
from stoker.servers.keys import KeyRequest

#: Agents in one session. Their keys and headers fit into ``BODY_BYTES``.
MOST_AGENTS = 500
BODY_BYTES = 4 * 1024 * 1024
#: Bytes of documents in one answer; the next request gets the others.
_ANSWER_BYTES = 8 * 1024 * 1024
#: Heartbeats in one transaction.
_HEARTBEATS = 100
#: Seconds between two checks whether heartbeats of a session are due.
_CHECK_SECONDS = 1.0


class RelayedPoll(Body):
    """
    The poll of one agent: its key, the ETag of the document that it has, and its header X-Stoker-Agent.

    The relay chooses ``number``, which names the agent in its session.
    """

    number: Count
    key: Annotated[str, Meta(min_length=1, max_length=255)]
    etag: Annotated[str, Meta(max_length=255)] | None = None
    agent: Annotated[str, Meta(max_length=8192)] = ""


class SharedPoll(Body):
    """
    The agents of a session that joined or polled again, and the numbers of those that left.

    ``number`` counts the session's requests. With ``full``, the session begins with ``agents``. A new request of a
    session ends the earlier one.
    """

    session: RequiredShortText
    number: Count
    agents: Annotated[list[RelayedPoll], Meta(max_length=MOST_AGENTS)]
    removed: Annotated[list[Count], Meta(max_length=10 * MOST_AGENTS)] | None = None
    full: bool = False


class SharedPollQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds to wait for a change, at most the interval of heartbeats")] = 0


class RelayedAnswer(Answer):
    """The answer to the agent ``number``, as /agent/v1/document gives it. Other statuses than 200 end its poll."""

    number: Count
    status: int
    etag: str | Absent = UNSET
    document: AgentDocument | Absent = UNSET
    retry_after: int | Absent = UNSET
    error: Annotated[dict[str, Any], Meta(description="The body of an error")] | Absent = UNSET


class SharedAnswer(Answer):
    """
    With ``unknown``, the process does not know the session, and closes the connection.

    The relay repeats the request on other connections, and then sends the full list.
    """

    agents: list[RelayedAnswer]
    unknown: bool | Absent = UNSET


class _RenderedAnswer(msgspec.Struct, omit_defaults=True):
    """A ``RelayedAnswer`` whose document is JSON already."""

    number: int
    status: int
    etag: str | Absent = UNSET
    document: msgspec.Raw | Absent = UNSET
    retry_after: int | Absent = UNSET
    error: Any = UNSET


@operation(200, SharedAnswer)
async def poll(request: RequestContext, body: SharedPoll, query: SharedPollQuery) -> Response:
    """Return the documents that differ from the agents' ETags, at the latest after the wait."""
    # Runs on the event loop. The session registers its agents before it reads their documents: no change is lost.
    app, relay = request.app, request.relay
    if body.full:
        session = app.relay_sessions.begin(relay, body.session, app.waiters, app.pending_polls)
    elif (continued := app.relay_sessions.find(relay, body.session, body.number)) is not None:
        session = continued
    else:
        # The relay's next connection may lead to the process that knows the session.
        return Response(200, msgspec.json.encode({"agents": [], "unknown": True}), {"Connection": "close"})
    until = time.monotonic() + min(query.wait, app.settings.heartbeat_seconds)
    with app.relay_sessions.hold(relay, body.session, session, body.number):
        await request.authorize_again()  # the relay may have been deleted before the session waited for that
        await _record_relay(request)
        async with session.lock:  # the changes of requests apply in their order
            answers = await _apply(request, session, body)
        await _record_heartbeats(request, session, body.agents)
        answers = await _wait(request, session, body.number, answers, until)
        return Response(200, msgspec.json.encode({"agents": answers}))


async def _apply(request: RequestContext, session: Session, body: SharedPoll) -> list[_RenderedAnswer]:
    """Apply the relay's changes to the session. Return the answers to agents with invalid keys."""
    for number in body.removed or ():
        session.remove(number)
    refused = await _refuse(request, ((each.number, each.key) for each in body.agents))
    if session.number is None:
        return []
    for each in body.agents:
        if each.number in refused:
            session.remove(each.number)
        else:
            session.put(each.number, each.key.partition(".")[0], each.key, each.etag, each.agent)
    return list(refused.values())


async def _wait(
    request: RequestContext, session: Session, number: int, answers: list[_RenderedAnswer], until: float
) -> list[_RenderedAnswer]:
    """Return the answers as soon as there is one, or at the time ``until`` (time.monotonic)."""
    while True:
        await session.space()
        if session.number != number:
            return answers
        answers += await _compare(request, session, session.take_changed())
        if answers:
            session.answered_at = time.monotonic()
        if answers or session.number != number or time.monotonic() >= until or request.app.waiters.closed:
            return answers
        await session.wait(until)
        await request.authorize_again()  # a deleted relay has no key any more


async def _compare(request: RequestContext, session: Session, members: Sequence[Member]) -> list[_RenderedAnswer]:
    """Return the documents of the members that do not have them. Members without a document leave the session."""
    documents = request.app.documents
    read = await _documents(request, members)
    # After the documents: another machine may have taken a server's place, and its document is for that machine.
    refused = await _refuse(request, ((member.number, member.key) for member in members))
    answers = list(refused.values())
    size = 0
    for member, document in zip(members, read, strict=True):
        etag = f'"{document.revision}"'
        if member.number in refused:
            session.remove(member.number)
        elif member.poll.is_superseded:
            session.remove(member.number)
            answers.append(_RenderedAnswer(member.number, 304, retry_after=SUPERSEDED_SECONDS))
        elif member.etag is not None and (member.etag == etag or etags.matches(member.etag, str(document.revision))):
            documents.record_receipt(document)
        elif size < _ANSWER_BYTES:
            size += len(document.body)
            documents.record_sent(document, OWN_CHANNEL)
            member.etag = etag
            answers.append(_RenderedAnswer(member.number, 200, etag, msgspec.Raw(document.body)))
        else:
            session.mark(member)
    return answers


async def _documents(request: RequestContext, members: Sequence[Member]) -> list[Document]:
    """Return the current document of each member."""
    documents = request.app.documents
    by_server: dict[str, Document] = {}
    missing = []
    for member in members:
        if (document := documents.agent(member.server_id, with_modes=member.with_modes)) is not None:
            by_server[member.server_id] = document
        else:
            missing.append((member.server_id, member.with_modes))
    if missing:
        loaded = await request.in_thread(documents.load_agents, missing)
        by_server.update({server_id: document for (server_id, _), document in zip(missing, loaded, strict=True)})
    return [by_server[member.server_id] for member in members]


async def _refuse(request: RequestContext, keys: Iterable[tuple[int, str]]) -> dict[int, _RenderedAnswer]:
    """Return the answers to the agents whose keys are not valid, by number."""
    cached = request.app.servers.keys.get_cached
    unknown = [(number, key) for number, key in keys if cached(key) is None]
    return await request.in_thread(_authenticate, request, unknown) if unknown else {}


def _authenticate(request: RequestContext, unknown: Sequence[tuple[int, str]]) -> dict[int, _RenderedAnswer]:
    results = request.app.servers.keys.authenticate_all(
        [KeyRequest(key, f"relay {request.relay}") for _, key in unknown]
    )
    refused = {}
    for (number, _), result in zip(unknown, results, strict=True):
        if isinstance(result, StokerError):
            response = errors.of(request.raw.scope["path"], result, request.app.settings.identity_url)
            refused[number] = _RenderedAnswer(number, response.status, error=response.content)
    return refused


async def _record_relay(request: RequestContext) -> None:
    relays = request.app.servers.relays
    if relays.is_due(request.relay):
        await request.in_thread(relays.record_seen, request.relay, request.raw.headers.get("user-agent", ""))


async def _record_heartbeats(request: RequestContext, session: Session, polls: Sequence[RelayedPoll]) -> None:
    """Record that the agents of the session are online."""
    members = [member for each in polls if (member := session.members.get(each.number)) is not None]
    if session.checked_at + _CHECK_SECONDS < time.monotonic():
        session.checked_at = time.monotonic()
        members = list(session.members.values())
    last_seen = request.app.servers.last_seen
    new = [(member.server_id, member.agent) for member in members if last_seen.observe(member.server_id, member.agent)]
    for start in range(0, len(new), _HEARTBEATS):
        await request.in_thread(last_seen.write_all, new[start : start + _HEARTBEATS])
