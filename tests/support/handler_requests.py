"""Requests as handlers receive them, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from stoker.http.access import PUBLIC, Caller
from stoker.http.api import Route
from stoker.http.request import RequestContext

_NOBODY = Caller()
_ROUTE = Route("GET", "/", PUBLIC, lambda _: None)


def request_to(
    app: Any, path: Mapping[str, str], headers: Mapping[str, str] | None = None, caller: Caller = _NOBODY
) -> RequestContext:
    """A request to a public route. ``path``: the named segments."""
    pairs = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return RequestContext(Request({"type": "http", "headers": pairs}), b"", path, app, caller, _ROUTE)
