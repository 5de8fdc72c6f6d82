"""
The polls of agents, which the relay holds until the stream of changes names their server.

A poll whose ETag the central Stoker has not confirmed is passed on without a wait. The answer 304 confirms the ETag:
the agent has the present document. Later polls with this ETag need no request until the document changes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from stoker.http.agent.document import LONGEST_WAIT, SUPERSEDED
from stoker.http.hold import Waiters, hold
from stoker.http.relay import MOST_AGENTS
from stoker.http.request import RequestContext, Response, matches_tag
from stoker.model.errors import Unavailable
from stoker.store.notifier import Notifier, server_topic
from stoker_relay.keys import key_of

#: Seconds after its last poll until an agent leaves the stream of changes.
_GRACE_SECONDS = 10.0
_LONGEST_HEADER = 4096

#: Sends a poll to the central Stoker, without a wait. Raises CenterAway.
Fetch = Callable[[RequestContext], Awaitable[Response]]


@dataclass(slots=True)
class Agent:
    """
    An agent whose key the central Stoker has accepted. ``header`` is its X-Stoker-Agent.

    ``etag`` is that of the agent's document, if the central Stoker has confirmed that it is the present one.
    """

    key: str
    header: str
    etag: str | None = None
    #: How often the stream has named its document without a match.
    changes: int = 0
    #: The time at which its last poll ends (time.monotonic).
    until: float = 0.0


class Polls:
    """All agents that poll, by server. Use it on the event loop only."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._notifier = Notifier()
        self._agents: dict[str, Agent] = {}
        self.waiters = Waiters(self._notifier)
        #: Set when other agents poll than those in the stream of changes.
        self.changed = asyncio.Event()

    def __len__(self) -> int:
        """The number of open polls."""
        return len(self.waiters.only)

    def count_agents(self) -> int:
        """Return the number of agents that have polled lately."""
        return len(self._agents)

    async def poll(self, request: RequestContext, wait: int) -> Response:
        """
        Return the agent's document as soon as it differs from If-None-Match, or 304 after ``wait`` seconds.

        Raises CenterAway, and Unavailable if there are too many agents.
        """
        server_id, key, tag = request.server, key_of(request.raw), request.raw.headers.get("if-none-match")
        header = request.raw.headers.get("x-stoker-agent", "")[:_LONGEST_HEADER]
        seconds = min(wait, LONGEST_WAIT)
        until = time.monotonic() + seconds

        async def read() -> tuple[Response, bool]:
            while tag is None or not self._is_current(server_id, key, tag):
                changes = self._count_changes(server_id)
                response = await self._fetch(request)
                if tag is None or response.status != 304 or "retry-after" in response.headers:
                    return response, True
                if changes == self._count_changes(server_id):  # else a line of the stream may be newer than the answer
                    break
            self._confirm(server_id, key, header, tag, until)
            return Response(304, headers={"ETag": tag}), False

        return await hold(request, server_topic(server_id), seconds, read, SUPERSEDED)

    def apply(self, revisions: Mapping[str, int], refused: Iterable[str]) -> list[str]:
        """Wake the polls that a line of the stream concerns. Return the keys that are no longer valid."""
        keys, notifications = [], {}
        for server_id in refused:
            if (agent := self._agents.pop(server_id, None)) is not None:
                keys.append(agent.key)
                notifications[server_topic(server_id)] = 0
        for server_id, revision in revisions.items():
            agent = self._agents.get(server_id)
            if agent is not None and not (agent.etag and matches_tag(agent.etag, str(revision))):
                agent.etag, agent.changes = None, agent.changes + 1
                notifications[server_topic(server_id)] = revision
        self._notifier.notify(notifications)
        return keys

    def expire(self) -> None:
        """Remove the agents that no longer poll."""
        before = time.monotonic() - _GRACE_SECONDS
        for server_id, agent in list(self._agents.items()):
            if agent.until < before:
                del self._agents[server_id]
                self.changed.set()

    def describe_agents(self) -> dict[str, list[str]]:
        """Return the agents as the request of the stream names them: their keys by header."""
        by_header: dict[str, list[str]] = {}
        for agent in self._agents.values():
            by_header.setdefault(agent.header, []).append(agent.key)
        return by_header

    def _is_current(self, server_id: str, key: str, etag: str) -> bool:
        """Return whether the central Stoker has confirmed to this agent that its document is the present one."""
        agent = self._agents.get(server_id)
        return agent is not None and (agent.key, agent.etag) == (key, etag)

    def _count_changes(self, server_id: str) -> int:
        agent = self._agents.get(server_id)
        return 0 if agent is None else agent.changes

    def _confirm(self, server_id: str, key: str, header: str, etag: str, until: float) -> None:
        """Note that the agent has the present document. Raises Unavailable if there are too many agents."""
        agent = self._agents.get(server_id)
        if agent is None or (agent.key, agent.header) != (key, header):
            if agent is None and len(self._agents) >= MOST_AGENTS:
                raise Unavailable(f"This relay serves {MOST_AGENTS} agents already, its maximum", 60)
            agent = self._agents[server_id] = Agent(key, header, changes=self._count_changes(server_id))
            self.changed.set()
        agent.etag, agent.until = etag, max(agent.until, until)
