"""Serializes responses of the CloudFormation API like Heat: to XML, or to JSON on request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from msgspec.structs import replace

from stoker.http.api import Failure
from stoker.http.request import Response
from stoker.model.errors import (
    Forbidden,
    RequestLimitExceeded,
    StokerError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

#: Characters that XML 1.0 cannot represent.
_UNSAYABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_CODES: Mapping[type[StokerError], tuple[int, str]] = {
    RequestLimitExceeded: (400, "RequestLimitExceeded"),
    Unauthorized: (403, "AccessDenied"),
    Forbidden: (403, "AccessDenied"),
    TooManyRequests: (429, "Throttling"),
    Unavailable: (503, "ServiceUnavailable"),
}


class Refused(StokerError):
    """An error of CloudFormation's API, with its own status and error code."""

    kind = "invalid"

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def answer(action: str, result: Any, *, as_json: bool) -> Response:
    """Return the response of a successful action."""
    return _reply(200, f"{action}Response", {f"{action}Result": result}, as_json=as_json)


def error(status: int, code: str, message: str, *, as_json: bool = False) -> Response:
    """Return an error response with CloudFormation's ``code``."""
    details = {"Type": "Server" if status >= 500 else "Sender", "Code": code, "Message": message}
    return _reply(status, "ErrorResponse", {"Error": details}, as_json=as_json)


def render(failure: Failure) -> Response:
    """Return the response to a request that failed before its handler ran."""
    if failure.error is not None:
        return refusal(failure.error, as_json=False)
    status = failure.status
    code = "InternalFailure" if status >= 500 else "InvalidParameterValue" if status == 400 else "InvalidAction"
    return replace(error(status, code, failure.message or failure.explanation), headers=failure.headers)


def refusal(problem: StokerError, *, as_json: bool) -> Response:
    """Return the error response for an exception."""
    if isinstance(problem, Refused):
        return error(problem.status, problem.code, problem.message, as_json=as_json)
    status, code = next(
        (response for kind, response in _CODES.items() if isinstance(problem, kind)), (400, "InvalidParameterValue")
    )
    response = error(status, code, problem.message, as_json=as_json)
    if isinstance(problem, TooManyRequests):
        return replace(response, headers={"Retry-After": str(problem.retry_after)})
    return replace(response, headers={"Retry-After": "1"}) if isinstance(problem, Unavailable) else response


def _reply(status: int, name: str, content: Mapping[str, Any], *, as_json: bool) -> Response:
    if as_json:
        return Response(status, {name: content})
    return Response(status, element(name, content).encode(), media_type="application/xml")


def element(name: str, value: Any) -> str:
    """
    Return an XML element.

    Items of a list become ``member`` elements. Keys that are no XML names become ``entry`` elements.
    """
    if not _NAME.fullmatch(name):
        return f'<entry key="{_text(name, quotes=True)}">{_content(name, value)}</entry>'
    return f"<{name}>{_content(name, value)}</{name}>"


def _content(name: str, value: Any) -> str:
    if name == "Metadata":  # as JSON
        return _text(json.dumps(value)) if value else ""
    if isinstance(value, Mapping):
        return "".join(element(str(key), part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return "".join(element("member", item) for item in value)
    return _text(str(value))


def _text(text: str, *, quotes: bool = False) -> str:
    return escape(_UNSAYABLE.sub("�", text), {'"': "&quot;"} if quotes else {})
