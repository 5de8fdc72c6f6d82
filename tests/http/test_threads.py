"""Limits of calls: shares of keys, turns and bounded queues."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from stoker.http.threads import Limit, in_thread
from stoker.model.errors import TooManyRequests

pytestmark = pytest.mark.anyio


class Work:
    """Calls that hang until they are let go; which keys' began."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun: list[str] = []

    def __call__(self, key: str) -> str:
        self.begun.append(key)
        assert self.go.wait(60)
        return key


@asynccontextmanager
async def limited(**sizes: int) -> AsyncIterator[tuple[Limit, Work]]:
    limit, work = Limit("test", **{"threads": 4, "share": 2, "waiting": 6, "waiting_share": 3, **sizes}), Work()
    try:
        yield limit, work
    finally:
        work.go.set()
    assert (limit._calls, limit._lines) == (0, {})


def start(limit: Limit, work: Work, *keys: str) -> list[asyncio.Task[str]]:
    return [asyncio.ensure_future(limit.run(key, work, key)) for key in keys]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.001)


async def test_one_key_cannot_occupy_all_threads():
    async with limited() as (limit, work):
        tasks = start(limit, work, "a", "a", "a", "a", "b", "c")
        await until(lambda: len(work.begun) == 4)
        assert sorted(work.begun) == ["a", "a", "b", "c"]
        work.go.set()
        assert sorted(await asyncio.gather(*tasks)) == ["a", "a", "a", "a", "b", "c"]


async def test_a_call_beyond_the_queue_is_refused():
    async with limited() as (limit, work):
        tasks = start(limit, work, *"aaaaa")
        await until(lambda: limit._calls == 5)
        with pytest.raises(TooManyRequests):
            await limit.run("a", work, "a")
        tasks += start(limit, work, *"bbbbb")
        await until(lambda: limit._calls == 10)
        with pytest.raises(TooManyRequests):
            await limit.run("c", work, "c")
        assert await in_thread(lambda: 1) == 1
        work.go.set()
        await asyncio.gather(*tasks)


async def test_keys_take_turns():
    async with limited(threads=1, share=1) as (limit, work):
        tasks = start(limit, work, *"aaabbc")
        await until(lambda: len(work.begun) == 1)
        work.go.set()
        await asyncio.gather(*tasks)
        assert work.begun == list("abcaba")


async def test_a_cancelled_call_releases_its_place():
    async with limited(threads=1) as (limit, work):
        running, waiting = start(limit, work, "a", "a")
        await until(lambda: limit._calls == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert limit._calls == 1
        work.go.set()
        await running


async def test_errors_reach_the_caller():
    async with limited() as (limit, _):
        with pytest.raises(ZeroDivisionError):
            await limit.run("a", lambda: 1 / 0)
