"""``{make_url: {scheme, username, password, host, port, path, query, fragment}}``: a URL of its parts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode, urlunsplit

from stoker.hot.functions._texts import is_call
from stoker.hot.paths import index_of
from stoker.hot.scope import Scope
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import StackValidationFailed

NAME = "make_url"
SINCE = "2017-09-01"

_PARTS = ("scheme", "username", "password", "host", "port", "path", "query", "fragment")


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, dict) or (not is_call(argument) and not set(argument) <= set(_PARTS)):
        raise StackValidationFailed(f'"make_url" needs a map of {", ".join(_PARTS)}')


def evaluate(argument: Any, _scope: Scope) -> str:
    if not isinstance(argument, dict) or not set(argument) <= set(_PARTS):
        raise StackValidationFailed(f'"make_url" needs a map of {", ".join(_PARTS)}')
    parts = {name: value for name, value in argument.items() if value is not None and value != ""}
    scheme, place, query = _text(parts, "scheme"), _netloc(parts), _query(parts.get("query"))
    path, fragment = _text(parts, "path"), _text(parts, "fragment")
    if ":" in scheme:
        raise StackValidationFailed(f'"make_url": {quote_word(scheme)} is no scheme')
    return urlunsplit((scheme, place, quote(path), query, quote(fragment)))


def _netloc(parts: dict[str, Any]) -> str:
    user, password, host = (_text(parts, name) for name in ("username", "password", "host"))
    port = _port(parts.get("port"))
    if not host and (user or password or port):
        raise StackValidationFailed('"make_url" needs a "host" for a user, a password or a port')
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    # Some services require a password without a user.
    plain = quote(host[1:-1] if host.startswith("[") and host.endswith("]") else host, safe=":")
    shown = f"[{plain}]" if ":" in plain else plain
    return f"{login}{'@' if login else ''}{shown}{port}"


def _port(value: Any) -> str:
    if value is None or value == "":
        return ""
    try:
        number = index_of(value)
    except ValueError:
        number = 0
    if not 1 <= number <= 65535:
        raise StackValidationFailed(f'"make_url": {quote_word(value)} is no port')
    return f":{number}"


def _query(query: Any) -> str:
    if query is None:
        return ""
    if not isinstance(query, dict):
        raise StackValidationFailed(f'"make_url" query must be a map, not {kind_of(query)}')
    for name, value in query.items():
        if isinstance(value, dict | list):
            raise StackValidationFailed(f'"make_url" query: {quote_word(name)} must be text, not {kind_of(value)}')
    return urlencode({name: "" if value is None else value for name, value in query.items()}, safe="/")


def _text(parts: dict[str, Any], name: str) -> str:
    value = parts.get(name, "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise StackValidationFailed(f'"make_url" {name} must be text, not {kind_of(value)}')
    return str(value)
