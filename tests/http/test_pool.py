"""Threads that run blocking calls for an event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from stoker.http.agent.batches import Batches
from stoker.http.threads import ThreadPool
from stoker.model.errors import Unavailable

pytestmark = pytest.mark.anyio


@pytest.fixture
def pool():
    pool = ThreadPool("test", 2)
    yield pool
    pool.shut_down()


async def test_results_and_errors_reach_the_caller(pool):
    assert await pool.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await pool.run(divmod, 7, 0)
    assert await asyncio.gather(*(pool.run(abs, -n) for n in range(100))) == list(range(100))


async def test_threads_are_started_when_calls_need_them(pool):
    names = {(await pool.run(threading.current_thread)).name for _ in range(5)}
    assert names == {"test_0"}
    both = threading.Barrier(2)
    await asyncio.gather(pool.run(both.wait, 60), pool.run(both.wait, 60))


async def test_a_call_cancelled_in_the_queue_is_not_made(pool):
    go, calls = threading.Event(), []
    busy = [pool.run(go.wait, 60) for _ in range(2)]
    cancelled, kept = pool.run(calls.append, "cancelled"), pool.run(calls.append, "kept")
    cancelled.cancel()
    go.set()
    await asyncio.gather(*busy, kept)
    assert calls == ["kept"]


async def test_shutdown_waits_for_running_calls_and_cancels_queued_ones():
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


async def test_an_item_that_fails_in_any_way_fails_alone():
    def divide(items):
        return [12 // item for item in items]

    batches = Batches("test", divide)
    results = await asyncio.gather(*(batches.submit(n) for n in (1, 0, 2, "x", 3)), return_exceptions=True)
    assert [results[n] for n in (0, 2, 4)] == [12, 6, 4]
    assert [type(results[n]) for n in (1, 3)] == [ZeroDivisionError, TypeError]


async def test_a_batch_is_not_repeated_while_the_database_is_unavailable():
    calls = []

    def fail(items):
        calls.append(len(items))
        raise Unavailable("the database does not answer")

    batches = Batches("test", fail, size=2)
    results = await asyncio.gather(*(batches.submit(n) for n in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 3
    assert sum(calls) == 3
