"""
The API for relays: one stream of the agents' documents that have changed, and the install script of a relay's site.

The first line of the stream has the present revision of every agent's document, so any process can serve the stream: a
relay that connects again misses nothing. While the stream is open, its agents count as online.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import ExitStack
from typing import Annotated

import msgspec
from msgspec import Meta

from stoker.http.access import RELAY_KEY, Access
from stoker.http.api import Route
from stoker.http.contracts import Answer, Body, Count, Id, Query, Whole, operation
from stoker.http.event_stream import HEADERS
from stoker.http.hold import Subscription, Waiters, hold
from stoker.http.request import RequestContext, Response, Streamed, file_response
from stoker.model.errors import Invalid, StokerError, Unauthorized
from stoker.servers.agent_bundle import Endpoint
from stoker.servers.keys import KeyRequest, key_topic
from stoker.servers.relays import relay_topic
from stoker.store import documents, servers
from stoker.store.notifier import ALL, report_topic, server_topic
from stoker.store.tx import Tx

#: Agents of one relay. Their keys and headers fit into ``BODY_BYTES``.
MOST_AGENTS = 10_000
BODY_BYTES = 4 * 1024 * 1024
_MEDIA_TYPE = "application/x-ndjson"
_LONGEST_SECONDS = 3600
#: Seconds without a change after which an empty line shows that the stream is alive.
_KEEP_ALIVE_SECONDS = 15.0
#: Seconds for which changes are collected, and seconds between two lines.
_COLLECT_SECONDS, _PAUSE_SECONDS = 0.005, 0.05
#: Fraction of the heartbeat interval after which the heartbeats of all agents are recorded again.
_HEARTBEAT_FRACTION = 0.3
#: Heartbeats in one transaction.
_HEARTBEATS = 500

Key = Annotated[str, Meta(min_length=1, max_length=255)]


class Following(Body):
    """The keys of the agents that poll at the relay, by their header X-Stoker-Agent."""

    agents: dict[str, Annotated[list[Key], Meta(max_length=MOST_AGENTS)]]


class FollowQuery(Query):
    wait: Annotated[Whole, Meta(description="Seconds until the stream ends, at most 3600")] = _LONGEST_SECONDS


class Changes(Answer):
    """
    A line of the stream. Other lines are empty.

    ``revisions`` has the revisions of changed documents by server, which are their ETags; the first line has those of
    all agents. ``refused`` names servers whose key is not valid, or no longer; they leave the stream.
    """

    revisions: dict[Id, Count]
    refused: list[Id]


def _topics_of(server_id: str) -> tuple[str, ...]:
    """Return the topics of a server's document and key. A relay does not know which changes an agent has reported."""
    return server_topic(server_id), report_topic(server_id), key_topic(server_id)


class _Agents:
    """The agents of one stream, and those whose document or key may have changed: ``keys`` has the key by server."""

    def __init__(self, relay: str, keys: Mapping[str, str], waiters: Waiters) -> None:
        self.keys = dict(keys)
        topics = (topic for id in self.keys for topic in _topics_of(id))
        self.subscription = Subscription(waiters, (relay_topic(relay), *topics))

    async def take(self) -> Collection[str]:
        """Return the servers that may have changed since the last call."""
        if self.subscription.notified:
            await asyncio.sleep(_COLLECT_SECONDS)
        topics = self.subscription.take()
        return set(self.keys) if ALL in topics else self.keys.keys() & {topic.partition("/")[2] for topic in topics}

    def remove(self, server_id: str) -> None:
        """Take a server out of the stream."""
        del self.keys[server_id]
        self.subscription.drop(*_topics_of(server_id))


@operation(200, Changes, media_type=_MEDIA_TYPE)
async def follow(request: RequestContext, body: Following, query: FollowQuery) -> Response:
    """Stream the changes of the agents' documents."""
    keys = {key.partition(".")[0]: key for group in body.agents.values() for key in group}
    if len(keys) > MOST_AGENTS:
        raise Invalid(f"agents: a relay serves at most {MOST_AGENTS} agents, not {len(keys)}")
    headers = {key.partition(".")[0]: header for header, group in body.agents.items() for key in group}
    # Registered before anything is read, so that no change is lost.
    agents = _Agents(request.relay, keys, request.app.waiters)
    with ExitStack() as stack:
        stack.callback(agents.subscription.close)
        await request.authorize_again()  # the relay may have been deleted before the subscription
        first = await _read(request, agents, keys)
        await _record_heartbeats(request, agents.keys, headers)
        leave = stack.pop_all().close
    until = time.monotonic() + min(query.wait, _LONGEST_SECONDS)
    lines = _stream(request, agents, headers, first, until)
    return Streamed(status=200, headers=HEADERS, media_type=_MEDIA_TYPE, chunks=lines, leave=leave)


async def _stream(
    request: RequestContext, agents: _Agents, headers: Mapping[str, str], first: Changes, until: float
) -> AsyncIterator[bytes]:
    """Yield lines until the time ``until`` (time.monotonic)."""
    yield _encode(first)
    interval = _HEARTBEAT_FRACTION * request.app.settings.heartbeat_seconds
    recorded_at = time.monotonic()

    async def read() -> tuple[Changes, bool]:
        line = await _read(request, agents, await agents.take())
        return line, bool(line.revisions or line.refused)

    while not request.app.waiters.closed and (left := until - time.monotonic()) > 0:
        try:
            line = await hold(request, agents.subscription.topic, min(_KEEP_ALIVE_SECONDS, interval, left), read)
            if recorded_at + interval <= time.monotonic():
                recorded_at = time.monotonic()
                await _record_heartbeats(request, agents.keys, headers)
        except StokerError:
            return  # the relay was deleted, or the database is away
        yield _encode(line) if line.revisions or line.refused else b"\n"
        await asyncio.sleep(_PAUSE_SECONDS)


async def _read(request: RequestContext, agents: _Agents, server_ids: Collection[str]) -> Changes:
    """Return the present state of these servers. Servers without a valid key leave the stream."""
    if not server_ids:
        return Changes(revisions={}, refused=[])
    line = await request.in_thread(_read_line, request, {id: agents.keys[id] for id in server_ids})
    for server_id in line.refused:
        agents.remove(server_id)
    return line


def _read_line(request: RequestContext, keys: Mapping[str, str]) -> Changes:
    service = request.app.servers.keys
    unknown = {server_id: key for server_id, key in keys.items() if service.get_cached(key) is None}
    results = service.authenticate_all([KeyRequest(key, f"relay {request.relay}") for key in unknown.values()])
    refused = {id for id, result in zip(unknown, results, strict=True) if isinstance(result, StokerError)}
    with request.read() as tx:
        heads = documents.agent_heads(tx, keys.keys() - refused)
    revisions = {id: heads[id].revision if id in heads else 0 for id in keys if id not in refused}
    return Changes(revisions=revisions, refused=sorted(refused))


async def _record_heartbeats(request: RequestContext, server_ids: Collection[str], headers: Mapping[str, str]) -> None:
    """Record that the relay and its agents are online."""
    relays, last_seen = request.app.servers.relays, request.app.servers.last_seen
    if relays.is_due(request.relay):
        user_agent = request.raw.headers.get("user-agent", "")
        await request.in_thread(relays.record_seen, request.relay, len(server_ids), user_agent)
    due = [(id, headers[id]) for id in list(server_ids) if last_seen.observe(id, headers[id])]
    for start in range(0, len(due), _HEARTBEATS):
        await request.in_thread(last_seen.write_all, due[start : start + _HEARTBEATS])


def _encode(line: Changes) -> bytes:
    return msgspec.json.encode(line) + b"\n"


_KEY = Access(RELAY_KEY)


@operation(200, bytes, media_type="text/x-python", has_etag=True)
def script(request: RequestContext, tx: Tx) -> Response:
    """Return the install script of the agent, with the relay's URL and certificates."""
    relay = servers.find_relay(tx, request.relay)
    if relay is None:
        raise Unauthorized("This relay's key is not valid, or has been revoked.")
    content = request.app.servers.agent_bundle.script_for(Endpoint(relay.url, relay.ca))
    return file_response(request, content, "text/x-python")


ROUTES = [
    Route("POST", "/relay/v1/changes", _KEY, follow, BODY_BYTES),
    Route("GET", "/relay/v1/install", _KEY, script),
]
