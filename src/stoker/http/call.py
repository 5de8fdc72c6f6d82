"""One request as a handler sees it, the answer it gives, and a row of a face's table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from stoker.http import threads
from stoker.http.decoding import decoded
from stoker.model.principal import Principal
from stoker.settings import Settings

if TYPE_CHECKING:
    from stoker.http.access import Access
    from stoker.http.services import Services

T = TypeVar("T")
P = ParamSpec("P")
_encoder = msgspec.json.Encoder()

#: Bytes of a request's body where the route says nothing else; Heat's own limit.
BODY_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    request: Request
    body: bytes
    path: Mapping[str, str]
    services: Services
    #: Whose token came with it, where the route asks for one.
    principal: Principal | None = None
    #: The server whose agent calls, on the agents' face.
    agent: str | None = None
    #: The one resource that the caller may see or signal; None: all of the project's.
    only: str | None = None
    #: Whose things it is about, where the path does not say that.
    admitted_to: str | None = None

    @property
    def query(self) -> QueryParams:
        return self.request.query_params

    @property
    def media_type(self) -> str:
        """What the body is said to be, in lower case and without parameters; empty: not said."""
        return self.request.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def project(self) -> str:
        """The path's project, or else the token's; access rules have held one against the other."""
        return self.admitted_to or self.path["project"]

    @property
    def user(self) -> Principal:
        assert self.principal is not None, "the route asks for no token"
        return self.principal

    @property
    def server(self) -> str:
        assert self.agent is not None, "the route asks for no agent key"
        return self.agent

    def json(self) -> Any:
        """Raises Invalid for what is not JSON, however it is not."""
        return decoded(self.body, "the request's body")

    async def in_thread(self, do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """For what may block, in a handler that runs on the event loop."""
        return await threads.in_thread(do, *args, **named)


@dataclass(frozen=True, slots=True)
class Reply:
    """Bytes go out as they are, everything else as JSON."""

    status: int
    content: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"

    def response(self) -> Response:
        if self.content is None:
            return Response(b"", self.status, dict(self.headers))
        raw = self.content if isinstance(self.content, bytes) else _encoder.encode(self.content)
        return Response(raw, self.status, dict(self.headers), media_type=self.media_type)


#: Plain handlers run in a worker thread; coroutines on the event loop, where nothing may block.
Handler = Callable[[Call], Reply] | Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Route:
    """
    ``path`` has ``{names}`` as whole segments; a literal segment goes before a named one. ``{name*}``, the last one,
    is all that is left, slashes and all.
    """

    verb: str
    path: str
    access: Access
    handler: Handler
    #: Bytes; or what the site's settings say.
    body_limit: int | Callable[[Settings], int] = BODY_LIMIT
