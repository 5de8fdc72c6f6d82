"""Failed requests: one HTTP status for each kind of error, and the format of Heat's API."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.http.request_context import Response
from stoker.model.errors import StokerError, TooManyRequests, Unavailable

STATUS = {
    "invalid": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not-found": 404,
    "conflict": 409,
    "not-acceptable": 406,
    "precondition-failed": 412,
    "unprocessable": 422,
    "too-many-requests": 429,
    "unavailable": 503,
}
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
    406: ("Not Acceptable", "The resource identified is not acceptable."),
    408: ("Request Timeout", "The server has waited too long for the request to be sent by the client."),
    411: ("Length Required", "Content-Length header required."),
    412: ("Precondition Failed", "A precondition for this request was not met."),
    413: ("Request Entity Too Large", "The body of your request was too large for this server."),
    414: ("Request-URI Too Long", "The request URI was longer than the server was willing to interpret."),
    415: ("Unsupported Media Type", "The body is not of a media type that this resource takes."),
    416: ("Requested Range Not Satisfiable", "The Range requested is not available."),
    422: ("Unprocessable Entity", "Unable to process the contained instructions."),
    429: ("Too Many Requests", "Too many requests were sent in a given amount of time."),
    431: ("Request Header Fields Too Large", "The request's headers were larger than the server is willing to read."),
    500: (
        "Internal Server Error",
        "The server has either erred or is incapable of performing the requested operation.",
    ),
    501: ("Not Implemented", "The request method is not implemented for this server."),
    503: ("Service Unavailable", "The server is currently unavailable. Please try again at a later time."),
}


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
        """The name of the status."""
        return _TITLES[self.status][0]

    @property
    def explanation(self) -> str:
        """The generic text of the status."""
        return _TITLES[self.status][1]


def describe(error: Exception, auth_url: str) -> Failure:
    """
    Return the failure for ``error``: 500 if it is not a StokerError, so that the response tells nothing of it.

    ``auth_url`` is the identity URL for the header WWW-Authenticate.
    """
    if not isinstance(error, StokerError):
        return Failure(500, "InternalError")
    status = STATUS[error.kind]
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
