"""The request that a handler receives, the response that it returns, and the routes of an API."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse

from stoker.http import audit_trail, contracts, threads
from stoker.http.pieces import LARGE, PiecedResponse
from stoker.http.threads import HANDLERS, Executor
from stoker.json_body import decode
from stoker.model.audit import Subject
from stoker.model.errors import Forbidden
from stoker.model.principal import Principal
from stoker.model.secrets import redact_credentials

if TYPE_CHECKING:
    from stoker.http.access import Access, Caller
    from stoker.http.app import App
    from stoker.store.tx import Tx

T = TypeVar("T")
P = ParamSpec("P")
_encoder = msgspec.json.Encoder()

#: Maximum bytes of a request's body, unless the route sets another limit; the same limit as Heat's.
BODY_LIMIT = 1024 * 1024


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
        """The parameters of the query string."""
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
        """The token of the request, or the token that Keystone issued for its signature; empty without both."""
        principal = self.caller.principal
        return (principal.token if principal is not None else None) or self.raw.headers.get("X-Auth-Token", "")

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

    def write(self, do: Callable[[Tx], T]) -> T:
        """
        Run ``do`` in a write transaction, which adds the route's action to the audit log, and return its result.

        Raises as ``Store.write``.
        """
        if not self.route.action:
            return self.app.store.write(do)

        def do_and_record(tx: Tx) -> T:
            audit_trail.describe_path(tx, self)
            result = do(tx)
            audit_trail.record(tx, self)
            return result

        return self.app.store.write(do_and_record)

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

    def json(self) -> Any:
        """Decode the body. Raises Invalid if the body is not JSON."""
        return decode(self.body, "the request's body")

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
        """Return the response for the web framework, with the encoded body."""
        if self.content is None:
            return StarletteResponse(b"", self.status, dict(self.headers))
        raw = self.content if isinstance(self.content, bytes) else _encoder.encode(self.content)
        kind = PiecedResponse if len(raw) > LARGE else StarletteResponse
        return kind(raw, self.status, dict(self.headers), media_type=self.media_type)


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


#: Functions run on a thread of the route's executor, which also encodes the response. Coroutine functions run on the
#: event loop and must not block. A handler with a contract also receives the body and the query (``http.contracts``).
Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Route:
    """
    A method and a path, with the access rule and the handler.

    A segment of ``path`` may be a name in braces. A literal segment takes precedence over a named segment. A last
    segment ``{name*}`` matches the rest of the path, including slashes. Example:

        Route("GET", "/v1/{project}/stacks/{name}", ANY_TOKEN, show)
    """

    verb: str
    path: str
    access: Access
    handler: Handler
    #: Maximum bytes of the body, or a function that reads the maximum from the site's settings.
    body_limit: int = BODY_LIMIT
    #: For routes whose handler authenticates the caller. Called after the first 64 KiB of a longer body, before the
    #: rest is read. Raises StokerError.
    check_large: Callable[[Request, App], Awaitable[None]] | None = None
    #: The executor whose threads run a plain handler.
    executor: Executor = HANDLERS
    #: The action in the audit log, such as ``delete server``; empty: the requests leave no entry, or another one.
    action: str = ""
    #: Whether ``handler`` is a coroutine function; computed once, not for each request.
    is_coroutine: bool = field(init=False)
    #: Decodes the request as the handler's contract says and calls the handler.
    call: Callable[[RequestContext], Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_coroutine", inspect.iscoroutinefunction(self.handler))
        object.__setattr__(self, "call", contracts.bind(self.handler, self.verb, Response))
