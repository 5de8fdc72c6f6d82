"""Threads that run blocking calls for an event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from stoker.http.thread_pool import ThreadPool


@pytest.fixture
def pool():
    pool = ThreadPool("test", 2)
    yield pool
    pool.shut_down()


def test_results_and_errors_reach_the_caller(pool):
    async def body() -> None:
        assert await pool.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await pool.run(divmod, 7, 0)
        assert await asyncio.gather(*(pool.run(abs, -n) for n in range(100))) == list(range(100))

    asyncio.run(body())


def test_threads_are_started_when_calls_need_them(pool):
    async def body() -> None:
        names = {(await pool.run(threading.current_thread)).name for _ in range(5)}
        assert names == {"test_0"}
        both = threading.Barrier(2)
        await asyncio.gather(pool.run(both.wait, 60), pool.run(both.wait, 60))

    asyncio.run(body())


def test_a_call_cancelled_in_the_queue_is_not_made(pool):
    async def body() -> None:
        go, calls = threading.Event(), []
        busy = [pool.run(go.wait, 60) for _ in range(2)]
        cancelled, kept = pool.run(calls.append, "cancelled"), pool.run(calls.append, "kept")
        cancelled.cancel()
        go.set()
        await asyncio.gather(*busy, kept)
        assert calls == ["kept"]

    asyncio.run(body())


def test_shutdown_waits_for_running_calls_and_cancels_queued_ones():
    async def body() -> None:
        pool, go, begun = ThreadPool("test", 1), threading.Event(), threading.Event()

        def work() -> str:
            begun.set()
            assert go.wait(60)
            return "finished"

        under_way, waiting = pool.run(work), pool.run(abs, -1)
        assert await asyncio.to_thread(begun.wait, 60)
        shutting_down = asyncio.create_task(asyncio.to_thread(pool.shut_down))
        while not pool._is_closed:
            await asyncio.sleep(0.001)
        go.set()
        await shutting_down
        assert await under_way == "finished"
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(RuntimeError, match="test is shut down"):
            pool.run(abs, -1)

    asyncio.run(body())


def test_a_closed_event_loop_is_not_called():
    pool, go = ThreadPool("test", 1), threading.Event()

    async def body() -> None:
        pool.run(go.wait, 60)

    asyncio.run(body())
    go.set()

    async def later() -> int:
        return await pool.run(abs, -1)

    assert asyncio.run(later()) == 1
    pool.shut_down()
