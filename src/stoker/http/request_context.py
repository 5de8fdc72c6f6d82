"""The request that a handler receives, the response that it returns, and the routes of an API."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse

from stoker.http import contracts, threads
from stoker.http.json_body import decode
from stoker.http.pieces import LARGE, PiecedResponse
from stoker.http.threads import HANDLERS, Executor
from stoker.model.errors import Forbidden
from stoker.model.principal import Principal
from stoker.model.secrets import redact_credentials
from stoker.settings import Settings

if TYPE_CHECKING:
    from stoker.http.access import Access
    from stoker.http.app import App

T = TypeVar("T")
P = ParamSpec("P")
_encoder = msgspec.json.Encoder()

#: Maximum bytes of a request's body, unless the route sets another limit; the same limit as Heat's.
BODY_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """One authenticated request, as its handler receives it."""

    raw: Request
    body: bytes
    path: Mapping[str, str]
    app: App
    #: The principal of the token, if the route requires a token.
    principal: Principal | None = None
    #: Id of the server whose agent sends the request, in the agent API.
    agent: str | None = None
    #: Id of the relay that sends the request, in the relay API.
    relay_id: str | None = None
    #: Id of the one resource that the caller may read or signal; None: all resources of the project.
    only: str | None = None
    #: The project of the request, if the path does not name it.
    project_id: str | None = None
    #: Id of the user whose objects the request is limited to; None: all users.
    limited_to: str | None = None
    #: The access rule of the route; None: the request is not authorized again.
    access: Access | None = None
    #: The caller uses a login or a pre-signed URL that Stoker created for the resource (``model.ownership``).
    as_owner: bool = False

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
        return self.project_id or self.path["project"]

    @property
    def user(self) -> Principal:
        """The principal of the token. The route must require a token."""
        assert self.principal is not None, "the route asks for no token"
        return self.principal

    @property
    def token(self) -> str:
        """The token of the request, or the token that Keystone issued for its signature; empty without both."""
        issued = self.principal.token if self.principal is not None else None
        return issued or self.raw.headers.get("X-Auth-Token", "")

    @property
    def server(self) -> str:
        """Id of the server whose agent sends the request. The route must require an agent key."""
        assert self.agent is not None, "the route asks for no agent key"
        return self.agent

    @property
    def relay(self) -> str:
        """Id of the relay that sends the request. The route must require a relay's key."""
        assert self.relay_id is not None, "the route asks for no relay's key"
        return self.relay_id

    async def authorize_again(self) -> None:
        """
        Apply the route's access rule again, because a request of several minutes may outlive its token.

        Raises Unauthorized or Forbidden.
        """
        if self.access is not None:
            await self.access.authenticate(self.raw, self.path, self.app)

    def require_resource(self, resource_id: str | None) -> None:
        """Raise Forbidden if the access rule limits the request to another resource. None: no resource is allowed."""
        if self.only not in (None, resource_id):
            raise Forbidden("You are not authorized to complete this action.")

    def require_owner(self, user_id: str) -> None:
        """Raise Forbidden if the access rule limits the request to the objects of another user."""
        if self.limited_to not in (None, user_id):
            raise Forbidden("You are not authorized to perform the requested action.")

    def json(self) -> Any:
        """Decode the body. Raises Invalid if the body is not JSON."""
        return decode(self.body, "the request's body")

    async def in_thread(self, do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a blocking call on a thread; for handlers that run on the event loop."""
        return await threads.in_thread(do, *args, **named)


@dataclass(frozen=True, slots=True)
class Response:
    """A response. Bytes are sent unchanged, any other ``content`` as JSON; None is an empty body."""

    status: int
    content: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
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

        Route("GET", "/v1/{project}/stacks/{name}", Token(READER), show)
    """

    verb: str
    path: str
    access: Access
    handler: Handler
    #: Maximum bytes of the body, or a function that reads the maximum from the site's settings.
    body_limit: int | Callable[[Settings], int] = BODY_LIMIT
    #: For routes whose handler authenticates the caller. Called with the beginning of a body of more than 64 KiB, or of
    #: more than 100 form fields, before the rest is read and parsed. Raises StokerError.
    check_start: Callable[[Request, bytes, App], Awaitable[None]] | None = None
    #: The executor whose threads run a plain handler.
    executor: Executor = HANDLERS
    #: Whether ``handler`` is a coroutine function; computed once, not for each request.
    is_coroutine: bool = field(init=False)
    #: Decodes the request as the handler's contract says and calls the handler.
    call: Callable[[RequestContext], Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_coroutine", inspect.iscoroutinefunction(self.handler))
        object.__setattr__(self, "call", contracts.bind(self.handler, self.verb, Response))
