"""A few kinds of error, each with its status; anything else is our bug and is reported as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stoker.http.call import Reply
from stoker.http.cfn import serialize
from stoker.model.errors import RequestLimitExceeded, StokerError, Unavailable

#: Where the object store's face begins.
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
    411: ("Length Required", "Content-Length header required."),
    412: ("Precondition Failed", "A precondition for this request was not met."),
    413: ("Request Entity Too Large", "The body of your request was too large for this server."),
    415: ("Unsupported Media Type", "The body is not of a media type that this resource takes."),
    416: ("Requested Range Not Satisfiable", "The Range requested is not available."),
    422: ("Unprocessable Entity", "Unable to process the contained instructions."),
    500: (
        "Internal Server Error",
        "The server has either erred or is incapable of performing the requested operation.",
    ),
    503: ("Service Unavailable", "The server is currently unavailable. Please try again at a later time."),
}


def reply(path: str, status: int, kind: str, message: str | None, headers: dict[str, str] | None = None) -> Reply:
    """An error in the shape of the face that ``path`` belongs to. ``message`` None: nothing to tell."""
    if path.startswith("/cfn"):
        return _cfn(status, message, headers)
    if path.startswith(OBJECTS):
        return _swift(status, message, headers or {})
    return Reply(status, _render(path)(status, kind, message), headers or {})


def of(path: str, error: StokerError, auth_url: str) -> Reply:
    status = STATUS[error.kind]
    if path.startswith(OBJECTS) and isinstance(error, RequestLimitExceeded):
        status = 413
    headers = {"WWW-Authenticate": f'Keystone uri="{auth_url}"'} if status == 401 else {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = "1"
    return reply(path, status, type(error).__name__, error.message, headers)


def _cfn(status: int, message: str | None, headers: dict[str, str] | None) -> Reply:
    """What goes wrong before its own handlers are asked."""
    code = "InternalFailure" if status >= 500 else "InvalidParameterValue" if status == 400 else "InvalidAction"
    return replace(serialize.error(status, code, message or _TITLES[status][1]), headers=headers or {})


def _render(path: str) -> Callable[[int, str, str | None], dict[str, Any]]:
    if path.startswith("/identity"):
        return _keystone
    return _zaqar if path.startswith("/messaging") else _heat


def _heat(status: int, kind: str, message: str | None) -> dict[str, Any]:
    title, explanation = _TITLES[status]
    said = {"type": kind, "traceback": None}
    if message is not None:
        said["message"] = message
    return {"code": status, "title": title, "explanation": explanation, "error": said}


def _keystone(status: int, _: str, message: str | None) -> dict[str, Any]:
    title, explanation = _TITLES[status]
    return {"error": {"code": status, "title": title, "message": message or explanation}}


def _zaqar(status: int, _: str, message: str | None) -> dict[str, Any]:
    title, explanation = _TITLES[status]
    return {"title": title, "description": message or explanation}


def _swift(status: int, message: str | None, headers: Mapping[str, str]) -> Reply:
    """A line of text when there is something to tell, else a page that says what the number means."""
    if message is None:
        title, explanation = _TITLES[status]
        page = f"<html><h1>{title}</h1><p>{explanation}</p></html>"
        return Reply(status, page.encode(), {"Content-Type": "text/html; charset=UTF-8", **headers})
    said = f"{message}\n".encode(errors="replace")
    return Reply(status, said, {"Content-Type": "text/plain; charset=UTF-8", **headers})
