"""Waits of requests for notifications, their ends, and the limits of event streams."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from stoker.http import hold
from stoker.http.hold import Waiter, Waiters
from stoker.http.request import RequestContext
from stoker.model.errors import TooManyRequests
from stoker.store.notifier import Notifier
from support.handler_requests import request_to

pytestmark = pytest.mark.anyio


async def wait(waiters: Waiters, topic: str, seconds: float, *, may_end_early: bool = False) -> bool:
    with Waiter(waiters, topic) as waiter:
        return await waiter.wait(seconds, may_end_early=may_end_early)


def count_timers(monkeypatch, loop: asyncio.AbstractEventLoop) -> list[float]:
    """Return the list to which the times of new timers are added, while the loop's own time stands still."""
    timers: list[float] = []
    call_at, now = loop.call_at, loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    monkeypatch.setattr(loop, "call_at", lambda at, *rest: (timers.append(at - now), call_at(at, *rest))[1])
    return timers


async def test_a_wait_ends_with_its_notification_or_with_its_time():
    notifier = Notifier()
    waiters = Waiters(notifier)
    long, short = (asyncio.ensure_future(wait(waiters, "s/1", seconds)) for seconds in (3600, 0.05))
    assert await short is False
    assert not long.done()
    notifier.notify({"s/1": 1})
    assert await long is True


async def test_no_wait_ends_before_its_time():
    waiters, loop = Waiters(Notifier()), asyncio.get_running_loop()
    for seconds in (0.0, 0.001, 0.1, 0.11):
        begun = loop.time()
        assert await wait(waiters, "s/1", seconds) is False
        assert loop.time() - begun >= seconds


async def test_waits_that_end_together_share_a_timer(monkeypatch):
    waiters = Waiters(Notifier())
    timers = count_timers(monkeypatch, asyncio.get_running_loop())
    waits = [asyncio.ensure_future(wait(waiters, f"s/{number}", 30)) for number in range(100)]
    await asyncio.sleep(0)
    assert len(timers) == 1
    waiters.close()
    assert await asyncio.gather(*waits) == [True] * 100


async def test_polls_that_began_together_end_at_different_times(monkeypatch):
    waiters = Waiters(Notifier())
    timers = count_timers(monkeypatch, asyncio.get_running_loop())
    polls = [asyncio.ensure_future(wait(waiters, f"s/{number}", 30, may_end_early=True)) for number in range(1000)]
    await asyncio.sleep(0)
    assert len(timers) > 100
    assert min(timers) >= 15
    assert max(timers) <= 30.2
    waiters.close()
    await asyncio.gather(*polls)


async def test_polls_that_began_at_different_times_are_held_until_their_ends(monkeypatch):
    waiters = Waiters(Notifier())
    timers = count_timers(monkeypatch, asyncio.get_running_loop())
    polls = [
        asyncio.ensure_future(wait(waiters, f"s/{number}", 30 + number % 30, may_end_early=True))
        for number in range(600)
    ]
    await asyncio.sleep(0)
    assert len(timers) == 30
    assert min(timers) >= 30
    waiters.close()
    await asyncio.gather(*polls)


async def test_a_cancelled_wait_leaves_nothing_behind():
    waiters = Waiters(Notifier())
    cancelled, other = (asyncio.ensure_future(wait(waiters, "s/1", 0.05)) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await other is False
    assert waiters.count() == 0


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
