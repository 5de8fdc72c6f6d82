"""The client of the central Stoker, with a bounded number of connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
import structlog

from stoker.http.request import Response
from stoker.model.errors import Unavailable
from stoker_relay import __version__
from stoker_relay.options import RelaySettings

_log = structlog.get_logger("stoker_relay")

#: Time limits in seconds. Agents wait 20 seconds for an answer.
_CONNECT_SECONDS, _ANSWER_SECONDS, _QUEUE_SECONDS = 5.0, 15.0, 10.0
#: Seconds without a line after which the stream of changes is lost. Stoker sends a line at least every 15 seconds.
_SILENCE_SECONDS = 45.0
#: Requests without a known key that wait at most. They use at most half of the connections.
_WAITING = 2000
#: Seconds after which agents try again.
_RETRY_SECONDS = 5
#: Headers of an answer that concern the agent.
_PASSED = ("etag", "retry-after", "www-authenticate")
#: Statuses of a proxy in front of a Stoker that is away, and of a Stoker that is overloaded or stops.
_AWAY = (502, 503, 504)
_REFUSED = (401, 403)
_UNTRIED = "no request has ended yet"


class CenterAway(Unavailable):
    """The central Stoker gives no answer, or asks for a later attempt. Agents receive a 503 with Retry-After."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The relay cannot reach the central Stoker: {reason}", _RETRY_SECONDS)
        self.reason = reason


class Center:
    """Sends requests to the central Stoker. ``problem`` is the reason why the last one failed; None: it did not."""

    def __init__(self, settings: RelaySettings) -> None:
        self.problem: str | None = _UNTRIED
        #: Whether Stoker refuses the relay's own key, so that the relay serves nobody.
        self._is_refused = False
        #: Requests without a known key that wait or are in progress.
        self._waiting = 0
        # httpx's own queue of requests takes time in proportion to the square of its length.
        self._requests = asyncio.Semaphore(settings.connections)
        self._strangers = asyncio.Semaphore(max(1, settings.connections // 2))
        self._own = {"Authorization": f"Bearer {settings.key}"}
        limits = httpx2.Limits(
            # One more than the agents' requests for the stream, and one for its successor.
            max_connections=settings.connections + 2,
            max_keepalive_connections=settings.connections,
        )
        self._client = httpx2.AsyncClient(
            base_url=settings.center,
            verify=ssl.create_default_context(cafile=settings.ca_file),
            timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS, pool=_QUEUE_SECONDS),
            limits=limits,
            headers={"User-Agent": f"stoker-relay/{__version__}"},
        )

    async def send(
        self, verb: str, target: str, headers: Mapping[str, str], body: bytes = b"", *, is_known: bool = True
    ) -> Response:
        """
        Send a request with the agent's own headers. ``target``: path and query.

        If the sender is not known, the request waits while too many such requests are in progress. Raises CenterAway.
        """
        if is_known:
            async with self._requests:
                return await self._send(verb, target, headers, body)
        if self._waiting >= _WAITING:
            raise CenterAway("too many requests without a known key wait already")
        self._waiting += 1
        try:
            async with self._strangers, self._requests:
                return await self._send(verb, target, headers, body)
        finally:
            self._waiting -= 1

    async def _send(self, verb: str, target: str, headers: Mapping[str, str], body: bytes) -> Response:
        if self._is_refused:
            raise CenterAway(self.problem or "it refuses this relay")
        try:
            response = await self._client.request(verb, target, headers=dict(headers), content=body)
        except httpx2.PoolTimeout:
            raise CenterAway("all connections are busy") from None
        except httpx2.HTTPError as error:
            raise self._away(f"{type(error).__name__}: {error}") from None
        if response.status_code in _AWAY:
            raise self._away(f"it answers {response.status_code}")
        passed = {name: response.headers[name] for name in _PASSED if name in response.headers}
        media_type = response.headers.get("content-type", "application/json")
        return Response(response.status_code, response.content or None, passed, media_type)

    async def send_own(self, verb: str, target: str, headers: Mapping[str, str]) -> Response:
        """Send a request of the relay itself, with its key. Raises CenterAway."""
        return await self.send(verb, target, {**headers, **self._own}, is_known=False)

    @asynccontextmanager
    async def follow(self, body: bytes) -> AsyncIterator[AsyncIterator[str]]:
        """Open the stream of changes (POST /relay/v1/changes), and yield its lines. Raises CenterAway."""
        timeout = httpx2.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS)
        headers = {**self._own, "Content-Type": "application/json"}
        try:
            async with self._client.stream(
                "POST", "/relay/v1/changes", content=body, headers=headers, timeout=timeout
            ) as response:
                if response.status_code != 200:
                    raise self._refusal(response.status_code, await response.aread())
                self._is_refused = False
                self._note(None)
                yield response.aiter_lines()
        except httpx2.HTTPError as error:
            raise self._away(f"{type(error).__name__}: {error}") from None

    def _refusal(self, status: int, body: bytes) -> CenterAway:
        if status not in _REFUSED:
            return self._away(f"it answers {status}: {body[:300].decode('utf-8', 'replace')}")
        self._is_refused = True
        return self._away("it refuses the key of this relay, which is wrong, or of a deleted relay")

    def _away(self, reason: str) -> CenterAway:
        self._note(reason)
        return CenterAway(reason)

    def _note(self, problem: str | None) -> None:
        if problem is not None and self.problem in (None, _UNTRIED):
            _log.warning("center.away", reason=problem)
        elif problem is None and self.problem is not None:
            _log.info("center.reachable")
        self.problem = problem
