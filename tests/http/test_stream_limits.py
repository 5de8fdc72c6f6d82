from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import Request

from stoker.http.request_context import RequestContext
from stoker.http.stream_limits import StreamLimits
from stoker.model.errors import TooManyRequests


def call(project: str, token: str) -> RequestContext:
    services: Any = None
    headers = [(b"x-auth-token", token.encode())]
    request = Request({"type": "http", "headers": headers})
    return RequestContext(raw=request, body=b"", path={"project": project}, app=services)


def test_streams_are_counted_for_tokens_and_projects() -> None:
    limits = StreamLimits(per_token=2, per_project=3)
    leave = [limits.enter(call("p", "a")), limits.enter(call("p", "a"))]
    with pytest.raises(TooManyRequests, match=r"token has 2 event streams .*max_streams_per_token"):
        limits.enter(call("p", "a"))
    leave.append(limits.enter(call("p", "b")))
    with pytest.raises(TooManyRequests, match=r"project has 3 event streams .*max_streams_per_project"):
        limits.enter(call("p", "b"))
    limits.enter(call("q", "c"))
    for each in leave:
        each()
    assert [limits.enter(call("p", "a")) for _ in range(2)]
