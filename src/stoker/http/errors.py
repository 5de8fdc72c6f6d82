"""Error responses: one HTTP status for each kind of error, in the format of each API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stoker.http.cfn import serialize
from stoker.http.request_context import Response
from stoker.model.errors import RequestLimitExceeded, StokerError, TooManyRequests, Unavailable

#: The path prefix of the object store API.
OBJECTS = "/object-store"

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


def reply(path: str, status: int, kind: str, message: str | None, headers: dict[str, str] | None = None) -> Response:
    """
    Return an error in the format of the API that ``path`` belongs to.

    ``kind`` is the error type that Heat's format reports. ``message`` None: the response has only the generic text of
    the status.
    """
    if path.startswith("/cfn"):
        return _cfn(status, message, headers)
    if path.startswith(OBJECTS):
        return _swift(status, message, headers or {})
    return Response(status, _render(path)(status, kind, message), headers or {})


def of(path: str, error: StokerError, auth_url: str) -> Response:
    """Return the error response for ``error``. ``auth_url`` is the identity URL for the header WWW-Authenticate."""
    if path.startswith("/cfn"):
        return serialize.refusal(error, as_json=False)
    status = STATUS[error.kind]
    if path.startswith(OBJECTS) and isinstance(error, RequestLimitExceeded):
        status = 413
    headers = {"WWW-Authenticate": f'Keystone uri="{auth_url}"'} if status == 401 else {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = "1"
    elif isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(error.retry_after)
    return reply(path, status, type(error).__name__, error.message, headers)


def _cfn(status: int, message: str | None, headers: dict[str, str] | None) -> Response:
    """Errors that occur before a CloudFormation handler runs."""
    code = "InternalFailure" if status >= 500 else "InvalidParameterValue" if status == 400 else "InvalidAction"
    return replace(serialize.error(status, code, message or _TITLES[status][1]), headers=headers or {})


def _render(path: str) -> Callable[[int, str, str | None], dict[str, Any]]:
    if path.startswith("/identity"):
        return _keystone
    return _zaqar if path.startswith("/messaging") else _heat


def _heat(status: int, kind: str, message: str | None) -> dict[str, Any]:
    title, explanation = _TITLES[status]
    error = {"type": kind, "traceback": None}
    if message is not None:
        error["message"] = message
    return {"code": status, "title": title, "explanation": explanation, "error": error}


def _keystone(status: int, _: str, message: str | None) -> dict[str, Any]:
    title, explanation = _TITLES[status]
    return {"error": {"code": status, "title": title, "message": message or explanation}}


def _zaqar(status: int, _: str, message: str | None) -> dict[str, Any]:
    title, explanation = _TITLES[status]
    return {"title": title, "description": message or explanation}


def _swift(status: int, message: str | None, headers: Mapping[str, str]) -> Response:
    """Return the message as a line of plain text, or without a message an HTML page that explains the status."""
    if message is None:
        title, explanation = _TITLES[status]
        page = f"<html><h1>{title}</h1><p>{explanation}</p></html>"
        return Response(status, page.encode(), {"Content-Type": "text/html; charset=UTF-8", **headers})
    text = f"{message}\n".encode(errors="replace")
    return Response(status, text, {"Content-Type": "text/plain; charset=UTF-8", **headers})
