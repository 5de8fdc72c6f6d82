"""An API: its routes, the format of its errors, and the headers of its responses, also for warnings."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.types import Scope

from stoker.http import contracts
from stoker.http.request import RequestContext, Response
from stoker.http.threads import HANDLERS, Limit
from stoker.model.errors import StokerError, TooManyRequests, Unavailable

if TYPE_CHECKING:
    from stoker.http.access import Access
    from stoker.http.app import App

#: Maximum bytes of a request's body, unless the route sets another limit; the same limit as Heat's.
BODY_LIMIT = 1024 * 1024
#: Maximum characters of one warning, and bytes of all, because clients limit the size of headers.
_LONGEST_WARNING, _MOST_WARNINGS = 500, 8000
_TITLES = {
    400: (
        "Bad Request",
        "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    ),
    401: ("Unauthorized", "This server could not verify that you are authorized to access the document you requested."),
    403: ("Forbidden", "Access was denied to this resource."),
    404: ("Not Found", "The resource could not be found."),
    405: ("Method Not Allowed", "The method is not allowed for this resource."),
    409: ("Conflict", "There was a conflict when trying to complete your request."),
    412: ("Precondition Failed", "A precondition for this request was not met."),
    413: ("Request Entity Too Large", "The body of your request was too large for this server."),
    416: ("Requested Range Not Satisfiable", "The Range requested is not available."),
    422: ("Unprocessable Entity", "Unable to process the contained instructions."),
    429: ("Too Many Requests", "Too many requests were sent in a given amount of time."),
    500: (
        "Internal Server Error",
        "The server has either erred or is incapable of performing the requested operation.",
    ),
    503: ("Service Unavailable", "The server is currently unavailable. Please try again at a later time."),
}


#: Functions run on a thread of the the pool, which also encodes the response. Coroutine functions run on the
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
    #: Maximum bytes of the body.
    body_limit: int = BODY_LIMIT
    #: The limit of the calls of a plain handler.
    limit: Limit = HANDLERS
    #: The action in the audit log, such as ``delete server``; empty: the requests leave no entry, or another one.
    action: str = ""
    #: Whether ``handler`` is a coroutine function; computed once, not for each request.
    is_coroutine: bool = field(init=False)
    #: Decodes the request as the handler's contract says and calls the handler.
    call: Callable[[RequestContext], Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_coroutine", inspect.iscoroutinefunction(self.handler))
        object.__setattr__(self, "call", contracts.bind(self.handler, self.verb))


@dataclass(frozen=True, slots=True)
class Failure:
    """
    A failed request, which each API renders in its own format.

    ``kind`` is the error type that Heat's format reports. ``message`` None: the response has only the generic text of
    the status.
    """

    status: int
    kind: str
    message: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    #: The error that a handler or an access rule raised.
    error: StokerError | None = None

    @property
    def title(self) -> str:
        return _TITLES[self.status][0]

    @property
    def explanation(self) -> str:
        return _TITLES[self.status][1]


def describe(error: Exception, auth_url: str) -> Failure:
    """
    Return the failure for ``error``: 500 if it is not a StokerError, so that the response tells nothing of it.

    ``auth_url`` is the identity URL for the header WWW-Authenticate.
    """
    if not isinstance(error, StokerError):
        return Failure(500, "InternalError")
    status = error.status
    headers = {"WWW-Authenticate": f'Keystone uri="{auth_url}"'} if status == 401 else {}
    if isinstance(error, Unavailable | TooManyRequests):
        headers["Retry-After"] = str(error.retry_after)
    return Failure(status, type(error).__name__, error.message, headers, error)


def render(failure: Failure) -> Response:
    """Return the response in the format of Heat's API, which is also that of Stoker's own APIs."""
    error = {"type": failure.kind, "traceback": None}
    if failure.message is not None:
        error["message"] = failure.message
    content = {"code": failure.status, "title": failure.title, "explanation": failure.explanation, "error": error}
    return Response(failure.status, content, failure.headers)


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """
    An API of the site.

    ``prefix`` is the first segment of its paths; empty: the API has all paths that no other one has.
    """

    prefix: str
    routes: Sequence[Route]
    render: Callable[[Failure], Response] = render
    #: The responses are documents of users: they are sent to readers as they are, and cached as their users decide.
    has_documents: bool = False
    #: The header Content-Security-Policy. Objects are documents of users: ``sandbox`` gives each its own origin without
    #: scripts.
    content_policy: str = "default-src 'none'; frame-ancestors 'none'; sandbox"
    #: Changes a request before its route is looked for, so that it may become the request of another API.
    translate: Callable[[Scope, App], Awaitable[None]] | None = None


def clock_warning(request: RequestContext) -> Mapping[str, str]:
    """Return the Warning header of answers with times of schedules or windows: while the site's time is wrong."""
    reason = request.app.health.warnings().get("clock")
    return warning_headers([reason] if reason else [])


def warning_headers(warnings: Sequence[str]) -> Mapping[str, str]:
    """
    Return HTTP's Warning header for an accepted request. Code 299 means a persistent warning without a specific code.

    JSON text serves as the quoted string, in ASCII.
    """
    values: list[str] = []
    left = _MOST_WARNINGS
    for warning in warnings:
        value = f"299 - {json.dumps(warning[:_LONGEST_WARNING])}"
        left -= len(value)
        if left >= 0:
            values.append(value)
    return {"Warning": ", ".join(values)} if values else {}
