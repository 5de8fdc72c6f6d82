"""Serializes responses of the CloudFormation API like Heat: results to XML, or to JSON on request, errors to XML."""

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

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def answer(action: str, result: Any, *, as_json: bool = False) -> Response:
    name, content = f"{action}Response", {f"{action}Result": result}
    return Response(200, {name: content}) if as_json else _in_xml(200, name, content)


def render(failure: Failure) -> Response:
    """Return the response to a failed request, with CloudFormation's code of the error."""
    status, problem = failure.status, failure.error
    if isinstance(problem, Refused):
        code = problem.code
    elif problem is not None:
        codes = (response for kind, response in _CODES.items() if isinstance(problem, kind))
        status, code = next(codes, (400, "InvalidParameterValue"))
    else:
        code = "InternalFailure" if status >= 500 else "InvalidAction"
    kind, message = "Server" if status >= 500 else "Sender", failure.message or failure.explanation
    headers = {name: value for name, value in failure.headers.items() if name != "WWW-Authenticate"}
    error = {"Type": kind, "Code": code, "Message": message}
    return replace(_in_xml(status, "ErrorResponse", {"Error": error}), headers=headers)


def _in_xml(status: int, name: str, content: Mapping[str, Any]) -> Response:
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
