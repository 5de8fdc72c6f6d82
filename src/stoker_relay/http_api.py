"""
The relay's HTTP API: Stoker's agent API (/agent/v1), /healthz and /metrics.

Polls of documents are answered by shared polls, downloads from the cache, and reports are spooled while the central
Stoker is away. All other requests of agents are passed on.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from stoker_relay.agent_polls import AWAY, AgentPolls
from stoker_relay.centre import Answer, Centre, CentreAway
from stoker_relay.downloads import Downloads
from stoker_relay.known_keys import KnownKeys, digest_of
from stoker_relay.metrics import Metrics
from stoker_relay.results import Results
from stoker_relay.spool import Spool, SpooledRequest, SpoolFull

_log = structlog.get_logger("stoker_relay")

#: The limit of the central Stoker for results.
_BODY_BYTES = 2 * 1024 * 1024
_PASSED = ("authorization", "content-type", "x-stoker-agent", "if-none-match")
#: Seconds between two questions whether a server is approved. A held one would take a connection to the centre.
_APPROVAL_SECONDS, _LONGEST_APPROVAL = 5.0, 60
_HOOK = re.compile(r"/agent/v1/hooks/([0-9a-f]{64})")
_LOG = re.compile(r"/agent/v1/runs/[^/]+/logs")
#: Requests that may wait for the central Stoker, which applies each of them once, and their kinds.
_SPOOLED = (
    ("POST", re.compile(r"/agent/v1/runs/[^/]+/signal"), "result"),
    ("POST", _LOG, "log"),
    ("PUT", re.compile(r"/agent/v1/facts"), "facts"),
    ("POST", re.compile(r"/agent/v1/checks/[^/]+"), "check"),
    ("POST", re.compile(r"/agent/v1/upgrade"), "upgrade"),
    ("POST", re.compile(r"/agent/v1/refusals"), "refusal"),
)
_FULL = Answer(503, {**AWAY.headers, "retry-after": "30"}, b'{"code":503,"error":{"message":"The spool is full."}}')


@dataclass(frozen=True, slots=True)
class RelayApp:
    """The ASGI application."""

    centre: Centre
    polls: AgentPolls
    results: Results
    spool: Spool
    known_keys: KnownKeys
    downloads: Downloads
    metrics: Metrics
    metrics_token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except CentreAway:
            answer = AWAY
        except ClientDisconnect:
            return
        except Exception:
            _log.exception("request.failed", method=request.method, path=scope["path"])
            answer = _error(500, "The relay cannot process the request; its log says why.")
        self.metrics.count_request(_kind(request.method, scope["path"]), answer.status)
        await Response(answer.body, answer.status, dict(answer.headers))(scope, receive, send)

    async def _answer(self, request: Request) -> Answer:
        """Raises CentreAway."""
        verb, path = request.method, request.scope["path"]
        if path == "/healthz":
            return self._health()
        if path == "/metrics":
            return self._metrics(request)
        if not path.startswith("/agent/v1/"):
            return _error(404, "A relay serves /agent/v1 only: send this request to the central Stoker.")
        return await (self._get(request, path) if verb == "GET" else self._change(request, verb, path))

    async def _get(self, request: Request, path: str) -> Answer:
        """Raises CentreAway."""
        if path == "/agent/v1/document":
            return await self._document(request)
        if path == "/agent/v1/approval":
            return await self._approval(request)
        if path in ("/agent/v1/install", "/agent/v1/stoker-agent.pyz") or _HOOK.fullmatch(path):
            return await self._download(request, path)
        return await self._pass(request, b"")

    async def _change(self, request: Request, verb: str, path: str) -> Answer:
        """Raises CentreAway."""
        body = await _read(request)
        if body is None:
            return _error(413, f"The body is longer than {_BODY_BYTES} bytes.")
        kind = _spooled_kind(verb, path)
        if kind is not None:
            return await self._report(request, kind, body)
        return await self._pass(request, body)

    def _health(self) -> Answer:
        health = {
            "status": "ok",
            "centre_reachable": self.centre.is_reachable,
            "polls": len(self.polls),
            "spooled_requests": len(self.spool),
            "spooled_bytes": self.spool.size,
        }
        return Answer(200, {"content-type": "application/json"}, json.dumps(health).encode())

    def _metrics(self, request: Request) -> Answer:
        is_local = request.client is not None and request.client.host in ("127.0.0.1", "::1")
        token = (_key(request) or "").encode("utf-8", "surrogateescape")
        if not is_local and not (self.metrics_token and compare_digest(token, self.metrics_token.encode())):
            return _error(401, "Metrics need the token in the file that --metrics-token-file names.")
        return Answer(200, {"content-type": self.metrics.content_type}, self.metrics.render())

    async def _document(self, request: Request) -> Answer:
        key, etag = _key(request), request.headers.get("if-none-match")
        wait = request.query_params.get("wait", "0")
        if key is None:
            return _error(401, "an agent's key is required: Authorization: Bearer <key>")
        if not (wait.isascii() and wait.isdecimal() and len(wait) < 10):
            return _error(400, "wait must be a whole number of seconds")
        if etag is not None and int(wait) == 0:
            self.polls.forget(key)  # the answer is needed at once, even if nothing has changed
            return await self._pass(request, b"")
        if len(key) > 255 or len(etag or "") > 255:
            return _error(401, "This key is not valid, or has been revoked.")
        return await self.polls.poll(key, etag, request.headers.get("x-stoker-agent", "")[:4096], int(wait))

    async def _approval(self, request: Request) -> Answer:
        wait = request.query_params.get("wait", "0")
        until = time.monotonic() + min(int(wait) if wait.isascii() and wait.isdecimal() else 0, _LONGEST_APPROVAL)
        while True:
            answer = await self.centre.send("GET", "/agent/v1/approval?wait=0", _headers(request))
            left = until - time.monotonic()
            if answer.status != 200 or b"PENDING" not in answer.body or left <= 0:
                return answer
            await asyncio.sleep(min(_APPROVAL_SECONDS, left))

    async def _download(self, request: Request, path: str) -> Answer:
        hook = _HOOK.fullmatch(path)
        if hook is not None:
            own = {name: value for name, value in _headers(request).items() if name != "if-none-match"}
            answer = await self.downloads.get(
                f"hook-{hook[1]}",
                lambda headers: self._send("GET", path, {**own, **headers}),
                may_use_cached=self._is_known(request),
            )
        else:
            # The install script contains the URL of this relay.
            target = path.replace("/agent/v1/install", "/relay/v1/install")
            answer = await self.downloads.get(
                path.rpartition("/")[2],
                lambda headers: self.centre.send_own("GET", target, headers),
                may_use_cached=True,
            )
        if answer.status == 200 and request.headers.get("if-none-match") == answer.headers.get("etag", ""):
            return Answer(304, {"etag": answer.headers["etag"]})
        return answer

    async def _report(self, request: Request, kind: str, body: bytes) -> Answer:
        """Pass a report on, or spool it while the central Stoker is away, or earlier ones of the agent wait."""
        agent = digest_of(_key(request) or "")
        if not self.spool.has(agent):
            try:
                return await (self._result(request, body) if kind == "result" else self._pass(request, body))
            except CentreAway:
                pass
        if not self.known_keys.has(agent):
            return AWAY
        spooled = SpooledRequest(request.method, _target(request), _headers(request), body)
        try:
            await self.spool.append(agent, kind, spooled)
        except SpoolFull:
            return _FULL
        except sqlite3.Error as error:
            _log.error("spool.not_written", reason=str(error))
            return _FULL
        return _acknowledge(request, kind, len(body))

    async def _result(self, request: Request, body: bytes) -> Answer:
        """Send a result together with those of other agents. Raises CentreAway."""
        key, config_id = _key(request), request.scope["path"].split("/")[-2]
        answer = await self.results.send(key, config_id, body) if key is not None and len(key) <= 255 else None
        if answer is None:
            return await self._pass(request, body)
        self._note_key(key, answer)
        return answer

    async def _pass(self, request: Request, body: bytes) -> Answer:
        """Pass a request on. Raises CentreAway."""
        return await self._send(request.method, _target(request), _headers(request), body)

    async def _send(self, verb: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """Send an agent's request, and note whether the central Stoker accepts the key. Raises CentreAway."""
        answer = await self.centre.send(verb, target, headers, body)
        self._note_key(_key_of(headers), answer)
        return answer

    def _note_key(self, key: str | None, answer: Answer) -> None:
        if key is not None and answer.status == 401:
            self.known_keys.remove(digest_of(key))
        elif key is not None and (answer.status < 300 or answer.status == 304):
            self.known_keys.add(digest_of(key))

    def _is_known(self, request: Request) -> bool:
        return self.known_keys.has(digest_of(_key(request) or ""))


def _spooled_kind(verb: str, path: str) -> str | None:
    """Return the kind of a request that may wait for the central Stoker, or None."""
    return next((kind for method, form, kind in _SPOOLED if method == verb and form.fullmatch(path)), None)


def _kind(verb: str, path: str) -> str:
    """Return the kind of a request, for metrics."""
    if path == "/agent/v1/document":
        return "poll"
    return _spooled_kind(verb, path) or "other"


def _acknowledge(request: Request, kind: str, size: int) -> Answer:
    """Return the answer that the central Stoker gives to a report of this kind."""
    headers = {"content-type": "application/json"}
    if kind == "result":
        return Answer(200, headers, b'{"status":""}')
    if kind == "log":
        offset = request.query_params.get("offset", "0")
        end = (int(offset) if offset.isascii() and offset.isdecimal() and len(offset) < 20 else 0) + size
        return Answer(200, headers, json.dumps({"offset": end}).encode())
    return Answer(204)


def _error(status: int, message: str) -> Answer:
    body = {"code": status, "error": {"type": "RelayError", "message": message}}
    return Answer(status, {"content-type": "application/json"}, json.dumps(body).encode())


async def _read(request: Request) -> bytes | None:
    """Return the body, or None if it is too long."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > _BODY_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _key(request: Request) -> str | None:
    return _key_of(request.headers)


def _key_of(headers: Mapping[str, str]) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key if scheme.lower() == "bearer" and key else None


def _headers(request: Request) -> dict[str, str]:
    """Return the agent's headers for the central Stoker, with its address."""
    headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
    address = request.client.host if request.client else ""
    return {**headers, "x-forwarded-for": address} if address else headers


def _target(request: Request) -> str:
    """Return the path and the query as the agent sent them."""
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    query: bytes = request.scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")
