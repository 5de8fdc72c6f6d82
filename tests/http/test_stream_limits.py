from __future__ import annotations

from contextlib import ExitStack

import pytest

from stoker.http import hold
from stoker.http.hold import Waiters
from stoker.http.request import RequestContext
from stoker.model.errors import TooManyRequests
from stoker.store.notifier import Notifier
from support.handler_requests import request_to


def call(project: str, token: str) -> RequestContext:
    return request_to(None, {"project": project}, {"x-auth-token": token})


def test_streams_are_counted_for_tokens_and_projects(monkeypatch) -> None:
    monkeypatch.setattr(hold, "_LIMITS", {"token": 1, "project": 8})
    waiters = Waiters(Notifier())
    with ExitStack() as stack:
        stack.enter_context(waiters.count_stream(call("p", "a")))
        with pytest.raises(TooManyRequests, match=r"token has 1 event streams"):
            stack.enter_context(waiters.count_stream(call("p", "a")))
        for token in "bcdefgh":
            stack.enter_context(waiters.count_stream(call("p", token)))
        with pytest.raises(TooManyRequests, match=r"project has 8 event streams"):
            stack.enter_context(waiters.count_stream(call("p", "i")))
        stack.enter_context(waiters.count_stream(call("q", "z")))
    with waiters.count_stream(call("p", "a")):
        pass
