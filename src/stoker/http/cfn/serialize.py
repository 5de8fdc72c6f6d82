"""Answers as Heat writes them: XML, or JSON where it was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import escape

from stoker.http.call import Reply
from stoker.model.errors import (
    ActionInProgress,
    Forbidden,
    RequestLimitExceeded,
    StackExists,
    StokerError,
    Unauthorized,
    Unavailable,
)

#: Keys whose value is JSON in the text of one element.
_JSON_TEXT = frozenset(("Metadata", "TemplateBody"))
#: What XML 1.0 has no way to say.
_UNSAYABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_CODES: Mapping[type[StokerError], tuple[int, str]] = {
    StackExists: (400, "AlreadyExists"),
    ActionInProgress: (400, "InvalidAction"),
    RequestLimitExceeded: (400, "RequestLimitExceeded"),
    Unauthorized: (403, "AccessDenied"),
    Forbidden: (403, "AccessDenied"),
    Unavailable: (503, "ServiceUnavailable"),
}


class Refused(Exception):
    """One of CloudFormation's own errors, by its code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def answer(action: str, result: Any, *, as_json: bool) -> Reply:
    return _reply(200, f"{action}Response", {f"{action}Result": result}, as_json=as_json)


def error(status: int, code: str, message: str, *, as_json: bool = False) -> Reply:
    said = {"Type": "Server" if status >= 500 else "Sender", "Code": code, "Message": message}
    return _reply(status, "ErrorResponse", {"Error": said}, as_json=as_json)


def refusal(found: StokerError | Refused, *, as_json: bool) -> Reply:
    if isinstance(found, Refused):
        return error(found.status, found.code, str(found), as_json=as_json)
    status, code = next(
        (said for kind, said in _CODES.items() if isinstance(found, kind)), (400, "InvalidParameterValue")
    )
    said = error(status, code, found.message, as_json=as_json)
    return replace(said, headers={"Retry-After": "1"}) if isinstance(found, Unavailable) else said


def _reply(status: int, name: str, content: Mapping[str, Any], *, as_json: bool) -> Reply:
    if as_json:
        return Reply(status, {name: content})
    return Reply(status, element(name, content).encode(), media_type="application/xml")


def element(name: str, value: Any) -> str:
    """One element; a list's items are ``member`` elements, names that XML cannot have become ``entry``."""
    if not _NAME.fullmatch(name):
        return f'<entry key="{_text(name, quotes=True)}">{_content(name, value)}</entry>'
    return f"<{name}>{_content(name, value)}</{name}>"


def _content(name: str, value: Any) -> str:
    if name in _JSON_TEXT:
        return _text(json.dumps(value)) if value else ""
    if isinstance(value, Mapping):
        return "".join(element(str(key), part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return "".join(element("member", item) for item in value)
    return _text(str(value))


def _text(text: str, *, quotes: bool = False) -> str:
    return escape(_UNSAYABLE.sub("�", text), {'"': "&quot;"} if quotes else {})
