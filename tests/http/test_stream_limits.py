from __future__ import annotations

import pytest

from stoker.http import event_stream
from stoker.http.event_stream import Streams
from stoker.http.request import RequestContext
from stoker.model.errors import TooManyRequests
from support.handler_requests import request_to


def call(project: str, token: str) -> RequestContext:
    return request_to(None, {"project": project}, {"x-auth-token": token})


def test_streams_are_counted_for_tokens_and_projects(monkeypatch) -> None:
    monkeypatch.setattr(event_stream, "_LIMITS", {"token": 1, "project": 8})
    limits = Streams()
    leave = [limits.enter(call("p", "a"))]
    with pytest.raises(TooManyRequests, match=r"token has 1 event streams"):
        limits.enter(call("p", "a"))
    leave += [limits.enter(call("p", token)) for token in "bcdefgh"]
    with pytest.raises(TooManyRequests, match=r"project has 8 event streams"):
        limits.enter(call("p", "i"))
    limits.enter(call("q", "z"))
    for each in leave:
        each()
    assert limits.enter(call("p", "a"))
