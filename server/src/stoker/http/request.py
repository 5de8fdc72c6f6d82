"""The request that a handler receives, the response that it returns, and what both have in memory."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from stoker.addresses import client_prefix
from stoker.http import audit_trail, threads
from stoker.model.audit import Subject
from stoker.model.errors import Forbidden, RequestLimitExceeded, TooManyRequests
from stoker.model.principal import Principal
from stoker.model.secrets import redact_credentials

if TYPE_CHECKING:
    from stoker.http.access import Caller
    from stoker.http.api import Route
    from stoker.http.app import App
    from stoker.settings import Settings
    from stoker.store.tx import Tx

T = TypeVar("T")
P = ParamSpec("P")
_encoder = msgspec.json.Encoder()
#: Bytes above which a response is sent in pieces, and bytes of one piece.
LARGE = 1024 * 1024
_PIECE = 64 * 1024
#: Limits of bodies in memory, in bytes: per known client, per address without a login, and in total.
_KNOWN_BYTES = 48 * 1024 * 1024
_UNKNOWN_BYTES = 8 * 1024 * 1024
_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One authenticated request, as its handler receives it."""

    raw: Request
    body: bytes
    path: Mapping[str, str]
    app: App
    caller: Caller
    route: Route
    #: The objects that the request concerns, which the handler names for the audit log.
    subject: Subject = field(default_factory=Subject)

    @property
    def query(self) -> QueryParams:
        return self.raw.query_params

    @property
    def media_type(self) -> str:
        """The body's media type in lower case, without parameters; empty without a Content-Type."""
        return self.raw.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def project(self) -> str:
        """The project of the token or, without one, of the path; the access rule has compared the two."""
        return self.caller.project or self.path["project"]

    @property
    def user(self) -> Principal:
        """The principal of the token. The route must require a token."""
        assert self.caller.principal is not None, "the route asks for no token"
        return self.caller.principal

    @property
    def token(self) -> str:
        """The token of the request; empty without one."""
        return self.raw.headers.get("X-Auth-Token", "")

    @property
    def server(self) -> str:
        """Id of the server whose agent sends the request. The route must require an agent key."""
        assert self.caller.server is not None, "the route asks for no agent key"
        return self.caller.server

    @property
    def relay(self) -> str:
        """Id of the relay that sends the request. The route must require a relay's key."""
        assert self.caller.relay is not None, "the route asks for no relay's key"
        return self.caller.relay

    def read(self) -> AbstractContextManager[Tx]:
        """Return a read transaction, for handlers with work that must not run in one."""
        return self.app.store.read()

    def write(self, do: Callable[[Tx], T], *, background: bool = False) -> T:
        """
        Run ``do`` in a write transaction, which adds the route's action to the audit log, and return its result.

        For handlers with work that must not run in a transaction; others receive theirs (``http.contracts``). Raises as
        ``Store.write``.
        """
        if not self.route.action:
            return self.app.store.write(do, background=background)

        def do_and_record(tx: Tx) -> T:
            audit_trail.describe_path(tx, self)
            result = do(tx)
            audit_trail.record(tx, self)
            return result

        return self.app.store.write(do_and_record, background=background)

    async def authorize_again(self) -> None:
        """
        Apply the route's access rule again, because a request of several minutes may outlive its token.

        Raises Unauthorized or Forbidden.
        """
        await self.route.access.authenticate(self.raw, self.path, self.app)

    def require_resource(self, resource_id: str | None) -> None:
        """Raise Forbidden if the caller is limited to another resource. None: no resource is allowed."""
        if self.caller.resource not in (None, resource_id):
            raise Forbidden("You are not authorized to complete this action.")

    async def in_thread(self, do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a blocking call on a thread; for handlers that run on the event loop."""
        return await threads.in_thread(do, *args, **named)


class Response(Struct, frozen=True):
    """A response. Bytes are sent unchanged, any other ``content`` as JSON; None is an empty body."""

    status: int
    content: Any = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    media_type: str = "application/json"

    def to_starlette(self) -> StarletteResponse:
        if self.content is None:
            return StarletteResponse(b"", self.status, dict(self.headers))
        raw = self.content if isinstance(self.content, bytes) else _encoder.encode(self.content)
        kind = _PiecedResponse if len(raw) > LARGE else StarletteResponse
        return kind(raw, self.status, dict(self.headers), media_type=self.media_type)


class _PiecedResponse(StarletteResponse):
    """A response whose body is in memory once, and not also in the send buffer of a client that does not read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for start in range(0, len(body), _PIECE):
            piece = body[start : start + _PIECE]
            more = start + _PIECE < len(body)
            await send({"type": "http.response.body", "body": piece, "more_body": more})


class Streamed(Response, frozen=True, kw_only=True):
    """
    A response whose chunks are sent as they come: the next one is requested after the previous one is written.

    ``leave`` is called once, at the end of the request.
    """

    chunks: AsyncIterator[bytes]
    leave: Callable[[], None] = lambda: None

    def to_starlette(self) -> StarletteResponse:
        return _StreamedResponse(self)


class _StreamedResponse(StreamingResponse):
    def __init__(self, streamed: Streamed) -> None:
        super().__init__(streamed.chunks, streamed.status, dict(streamed.headers), media_type=streamed.media_type)
        self._leave = streamed.leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def without_credentials(response: Response) -> Response:
    """
    Return the response as users with read access may see it, with all agents' credentials redacted.

    Credentials are created when a resource's data is requested, and templates may copy them into any other value. The
    whole response is therefore searched.
    """
    if response.content is None:
        return response
    raw = response.content if isinstance(response.content, bytes) else _encoder.encode(response.content)
    return replace(response, content=redact_credentials(raw))


class Client(NamedTuple):
    """The client whose share of threads and memory a request uses."""

    key: str
    #: The client is authenticated: a project or an agent. Otherwise ``key`` is an address.
    is_known: bool


class Bodies:
    """Reads the bodies of requests, and counts their bytes until ``release``. Use it on the event loop only."""

    def __init__(self) -> None:
        self._total = 0
        self._bytes: dict[str, int] = {}

    async def read(self, request: Request, client: Client, limit: int) -> bytes:
        """
        Return the body of the request.

        Raises RequestLimitExceeded as soon as the body exceeds ``limit`` bytes, and TooManyRequests if the client
        exceeds its share of memory.
        """
        chunks: list[bytes] = []
        size = 0
        try:
            async for chunk in request.stream():
                if not chunk:
                    continue
                size += len(chunk)
                self._add(client, len(chunk), size)
                if size > limit:
                    raise RequestLimitExceeded(f"Request limit exceeded: the body is longer than {limit} bytes")
                chunks.append(chunk)
        except BaseException:
            self.release(client, size)
            raise
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def release(self, client: Client, size: int) -> None:
        """Undo the reservation of a body of ``size`` bytes, after its request was answered."""
        self._total -= size
        usage = self._bytes.get(client.key, 0) - size
        if usage:
            self._bytes[client.key] = usage
        else:
            self._bytes.pop(client.key, None)

    def _add(self, client: Client, more: int, size: int) -> None:
        """Reserve ``more`` bytes for a body that has ``size`` now. The only body of a client is never refused."""
        self._total += more
        usage = self._bytes[client.key] = self._bytes.get(client.key, 0) + more
        share = _KNOWN_BYTES if client.is_known else _UNKNOWN_BYTES
        if usage > size and (usage > share or self._total > _BYTES):
            raise TooManyRequests("Too many large requests at a time: try again in a moment", retry_after=2)


def client_address(request: Request, settings: Settings) -> str:
    """Return the address, or its network prefix, that rate limits count as one client."""
    return client_prefix(client_host(request, settings))


def client_host(request: Request, settings: Settings) -> str:
    """
    Return the address of the client; empty if it is not known.

    ``X-Forwarded-For`` is read only if a proxy of ``proxy_addresses`` sends the request. Only the entries that such
    proxies added are trusted: from the end of the list to the first address that is not a declared proxy.
    """
    host = request.client.host if request.client else ""
    if settings.is_proxy(host):
        forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
        for entry in reversed(forwarded.split(",")):
            host = entry.strip()[:64] or host
            if not settings.is_proxy(host):
                break
    return host


def matches_tag(header: str, tag: str) -> bool:
    """
    Return whether ``tag`` (without quotes) is in the header If-Match, If-None-Match or If-Range; ``*`` matches any tag.
    """
    tags = {tag.strip().removeprefix("W/").strip('"').lower() for tag in header.split(",")}
    return not {"*", tag}.isdisjoint(tags)


def file_response(request: RequestContext, content: bytes, media_type: str) -> Response:
    """
    Return a file, or 304 if the client has it (If-None-Match).

    The ETag is the file's SHA-256, with which the install commands verify the download.
    """
    digest = hashlib.sha256(content).hexdigest()
    headers = {"ETag": f'"{digest}"'}
    if matches_tag(request.raw.headers.get("if-none-match", ""), digest):
        return Response(304, headers=headers)
    return Response(200, content, headers, media_type)
