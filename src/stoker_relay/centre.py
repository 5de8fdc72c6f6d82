"""The client of the central Stoker, with a bounded number of connections."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import httpx2
import structlog

from stoker_relay import __version__
from stoker_relay.settings import RelaySettings

_log = structlog.get_logger("stoker_relay")

#: Time limits in seconds. Agents wait 20 seconds for an answer.
_CONNECT_SECONDS, _ANSWER_SECONDS, _QUEUE_SECONDS = 5.0, 15.0, 10.0
#: Headers of an answer that concern the agent.
_PASSED = ("content-type", "etag", "retry-after", "www-authenticate", "x-openstack-request-id")
#: Statuses of a proxy in front of a Stoker that is away, and of a Stoker that is overloaded or stops.
_AWAY = (502, 503, 504)
_USER_AGENT = f"stoker-relay/{__version__}"


class CentreAway(Exception):
    """The central Stoker gave no answer, or asks for a later attempt."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Polls:
    """
    The connections for the shared polls of one batch, of which two are in use at a time.

    The central Stoker may be several processes behind one address, of which one has the batch's session. A process that
    does not know the session closes the connection, so all that stay open lead to the one that does.
    """

    def __init__(
        self, client: httpx2.AsyncClient, poll: Callable[[httpx2.AsyncClient, bytes, int], Awaitable[Answer]]
    ) -> None:
        self._client = client
        self._poll = poll

    async def poll(self, body: bytes, wait: int) -> Answer:
        """Send a shared poll, with the relay's key. Raises CentreAway."""
        return await self._poll(self._client, body, wait)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class Centre:
    """Sends requests to the central Stoker."""

    def __init__(self, settings: RelaySettings) -> None:
        self._key = settings.key
        self.is_reachable = True
        verify = ssl.create_default_context(cafile=settings.ca_file)
        timeout = httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS, pool=_QUEUE_SECONDS)
        bounded = httpx2.Limits(max_connections=settings.connections, max_keepalive_connections=settings.connections)
        base = settings.centre.rstrip("/")
        self._client = httpx2.AsyncClient(base_url=base, verify=verify, timeout=timeout, limits=bounded)
        # Held polls must not take the connections of results. The server closes connections that it no longer wants.
        unbounded = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=None)
        self._create_poll_client = partial(
            httpx2.AsyncClient, base_url=base, verify=verify, timeout=timeout, limits=unbounded
        )

    async def send(self, verb: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """Send the request of an agent, with the agent's own headers. Raises CentreAway."""
        return await self._call(self._client, verb, target, headers, body, _ANSWER_SECONDS)

    async def send_own(self, verb: str, target: str, headers: Mapping[str, str]) -> Answer:
        """Send a request of the relay itself, with its key. Raises CentreAway."""
        return await self.send(verb, target, {**headers, "Authorization": f"Bearer {self._key}"})

    def open_polls(self) -> Polls:
        """Return new connections for the shared polls of one batch."""
        return Polls(self._create_poll_client(), self._poll)

    async def _poll(self, client: httpx2.AsyncClient, body: bytes, wait: int) -> Answer:
        target = f"/relay/v1/polls?wait={wait}"
        return await self._call(client, "POST", target, self._headers(), body, wait + _ANSWER_SECONDS)

    async def send_results(self, body: bytes) -> Answer:
        """Send results of several agents, with the relay's key. Raises CentreAway."""
        return await self._call(self._client, "POST", "/relay/v1/results", self._headers(), body, _ANSWER_SECONDS)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}

    async def close(self) -> None:
        """Close all connections other than those of ``open_polls``."""
        await self._client.aclose()

    async def _call(
        self,
        client: httpx2.AsyncClient,
        verb: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        seconds: float,
    ) -> Answer:
        sent = {"User-Agent": _USER_AGENT, **headers}
        timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS, pool=_QUEUE_SECONDS)
        try:
            response = await client.request(verb, target, headers=sent, content=body, timeout=timeout)
        except httpx2.PoolTimeout:
            raise CentreAway("all connections to the central Stoker are busy") from None
        except httpx2.HTTPError as error:
            self._note(False, f"{type(error).__name__}: {error}")
            raise CentreAway(f"{type(error).__name__}: {error}") from None
        if response.status_code in _AWAY:
            self._note(False, f"status {response.status_code}")
            raise CentreAway(f"status {response.status_code}")
        self._note(True, "")
        passed = {name: response.headers[name] for name in _PASSED if name in response.headers}
        return Answer(response.status_code, passed, response.content)

    def _note(self, is_reachable: bool, reason: str) -> None:
        if is_reachable == self.is_reachable:
            return
        self.is_reachable = is_reachable
        if is_reachable:
            _log.info("centre.reachable")
        else:
            _log.warning("centre.away", reason=reason)
