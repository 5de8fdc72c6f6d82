"""What the job queue guarantees, on both databases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stoker.failures import backoff
from stoker.store import jobs
from stoker.store.notifier import JOBS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import PermanentFailure, Work
from support import query
from support.waiting import until
from support.work import count_jobs

pytestmark = pytest.mark.slow

Args = Mapping[str, Any]


#: Jobs that one process runs at a time.
WORKERS = 4


class Heard:
    """What handlers were called with, and a way to wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.calls: list[Any] = []

    def __call__(self, args: Args) -> None:
        with self._changed:
            self.calls.append(args["n"])
            self._changed.notify_all()

    def wait(self, count: int, seconds: float = 60) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= count, seconds), self.calls
            return list(self.calls)


@pytest.fixture
def open_work(store: Store) -> Iterator[Callable[[], Work]]:
    """Opens a queue as a process does; all are stopped in the end."""
    opened: list[Work] = []

    def open_one() -> Work:
        opened.append(Work(store))
        return opened[-1]

    yield open_one
    for work in opened:
        work.stop()


@pytest.fixture
def work(open_work: Callable[[], Work]) -> Work:
    return open_work()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def started(work: Work, heard: Heard) -> Work:
    """Runs jobs of the kind "k" with ``heard``."""
    work.register("k", heard)
    work.start()
    return work


def defer(store: Store, work: Work, n: Any, *, kind: str = "k", key: str = "", at: datetime | None = None) -> None:
    store.write(lambda tx: work.defer(tx, kind, key or str(n), {"n": n}, at=at))


def later(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_a_job_runs_with_its_arguments_and_is_removed(store, started, heard):
    value = {"text": "ü\0☃", "list": [1, None, 2.5], "nested": {"deep": [True]}}
    defer(store, started, value, key="x")
    assert heard.wait(1) == [value]
    until(lambda: count_jobs(store) == 0)


def test_a_job_committed_while_the_last_thread_is_taken_is_announced(store, work, monkeypatch):
    """Another process may have a free thread, and the transaction of the job saw one in this process."""
    announced, blocked, end = threading.Event(), threading.Event(), threading.Event()
    store.notifier.subscribe(lambda topics: announced.set() if JOBS_TOPIC in topics else None)
    work.register("k", lambda args: (blocked.set(), end.wait(60)), threads=1)
    take = jobs.take

    def take_slowly(tx: Tx, *args: Any) -> Any:
        taken = take(tx, *args)
        if taken and not blocked.is_set():
            work._dispatcher.wake(work._pools["k"], 0.0)  # as the commit of another thread calls it
        return taken

    monkeypatch.setattr(jobs, "take", take_slowly)
    defer(store, work, 1)
    work.start()
    try:
        assert blocked.wait(60)
        assert announced.wait(60)
    finally:
        end.set()


def test_a_rolled_back_transaction_leaves_no_job(store, started, heard):

    def undone(tx: Tx) -> None:
        started.defer(tx, "k", "a", {"n": "undone"})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(undone)
    defer(store, started, "kept")
    assert heard.wait(1) == ["kept"]
    assert count_jobs(store) <= 1


def test_a_job_does_not_begin_before_its_time(store, work, heard):
    work.register("k", lambda _: heard({"n": datetime.now(UTC)}))
    work.start()
    at = later(1.2)
    defer(store, work, 1, at=at)
    assert heard.wait(1)[0] >= at


def test_a_distant_deadline_delays_no_other_job(store, started, heard):
    defer(store, started, "far", at=datetime(9999, 1, 1, tzinfo=UTC))
    defer(store, started, "in 300 years", at=datetime(2400, 1, 1, tzinfo=UTC))
    defer(store, started, "now")
    assert heard.wait(1) == ["now"]
    defer(store, started, "then")
    assert heard.wait(2) == ["now", "then"]


def test_a_cancelled_job_never_runs(store, started, heard):
    at = later(4)  # far later than the cancellation, also on a busy machine
    defer(store, started, "gone", key="a", at=at)
    store.write(lambda tx: started.cancel(tx, "k", "a"))
    defer(store, started, "other", key="b", at=at + timedelta(seconds=0.5))
    heard.wait(1)
    assert heard.calls == ["other"]


def test_cancelling_includes_due_jobs_that_have_not_begun(store, work, heard):
    """All workers are busy; what waits behind them has not begun."""
    authorizer, begun = threading.Event(), threading.Semaphore(0)

    def slow(_: Args) -> None:
        begun.release()
        authorizer.wait(60)

    work.register("slow", slow)
    work.register("k", heard)
    work.start()
    for n in range(12):
        defer(store, work, n, kind="slow")
    for _ in range(WORKERS):
        assert begun.acquire(timeout=60)
    for n in range(12):
        defer(store, work, n)
    for n in range(12):
        store.write(lambda tx, key=str(n): work.cancel(tx, "k", key))
    authorizer.set()
    defer(store, work, "last")
    heard.wait(1)
    assert heard.calls == ["last"]


def test_cancelling_keeps_other_kinds_and_can_be_rolled_back(store, work, heard):
    work.register("k", heard)
    defer(store, work, 1, key="a")

    def undone(tx: Tx) -> None:
        work.cancel(tx, "k", "a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(undone)
    store.write(lambda tx: work.cancel(tx, "other", "a"))
    work.start()
    assert heard.wait(1) == [1]


def test_a_new_job_does_not_wait_for_a_running_one(store, work):
    begun, go_on = threading.Event(), threading.Event()

    def handle(_args: Args) -> None:
        begun.set()
        go_on.wait(60)

    def waits(kind: str = "k", key: str = "a") -> bool:
        return store.write(lambda tx: work.is_pending(tx, kind, key))

    work.register("k", handle)
    assert not waits()
    defer(store, work, 1, key="a")
    assert (waits(), waits(key="b"), waits(kind="other")) == (True, False, False)
    work.start()
    assert begun.wait(60)
    assert not waits()
    defer(store, work, 2, key="a", at=later(600))
    assert waits()
    go_on.set()


def test_a_failed_job_is_retried_and_logs_the_reason(store, work, heard):
    is_right = threading.Event()

    def fails(args: Args) -> None:
        heard(args)
        if not is_right.is_set():
            raise RuntimeError("the moon is wrong")

    work.register("k", fails)
    work.start()
    defer(store, work, 1)
    heard.wait(2)
    until(lambda: "the moon is wrong" in last_error(store))
    is_right.set()
    until(lambda: count_jobs(store) == 0)
    assert set(heard.wait(3)) == {1}


def last_error(store: Store) -> str:
    with store.read() as tx:
        return str(query.scalar(tx, "SELECT last_error FROM jobs"))


def test_pauses_between_retries_double_up_to_five_minutes():
    assert [backoff(n) for n in (0, 1, 2, 8, 9, 1_000_000)] == [1, 2, 4, 256, 300, 300]
    assert [backoff(n, first=0.5, longest=3) for n in (0, 1, 2, 3)] == [0.5, 1, 2, 3]


def test_a_handler_may_fail_permanently(store, work, heard):
    def hopeless(args: Args) -> None:
        heard(args)
        raise PermanentFailure("no use")

    work.register("k", hopeless)
    work.start()
    defer(store, work, 1)
    heard.wait(1)
    until(lambda: count_jobs(store) == 0)
    assert heard.calls == [1]


def test_a_later_deadline_does_not_delay_an_earlier_one_of_the_same_key(store, started, heard):
    defer(store, started, "far", key="a", at=later(3600))
    defer(store, started, "near", key="a", at=later(0.5))
    defer(store, started, "now", key="a")
    assert sorted(heard.wait(2)) == ["near", "now"]


def test_a_failing_job_does_not_delay_a_newer_one_of_the_same_key(store, work, heard):
    def fails(args: Args) -> None:
        heard(args)
        if args["n"] == "bad":
            raise RuntimeError("as ever")

    work.register("k", fails)
    work.start()
    for _ in range(3):
        defer(store, work, "bad", key="a")
    heard.wait(3)
    defer(store, work, "good", key="a")
    until(lambda: "good" in heard.calls)


def test_jobs_of_an_unregistered_kind_are_kept(store, open_work, heard):
    """As when another process, or the next version, does that kind."""
    first, second = open_work(), open_work()
    first.register("k", heard)
    first.start()
    defer(store, first, "foreign", kind="foreign")
    for n in range(3):  # whoever takes these has passed the foreign one
        defer(store, first, "own", key=str(n))
        heard.wait(n + 1)
    first.stop()
    second.register("foreign", heard)
    second.start()
    assert heard.wait(4) == ["own", "own", "own", "foreign"]


def test_a_job_may_defer_jobs_and_write(store, work, heard):
    def first(args: Args) -> None:
        if args["n"] < 5:
            defer(store, work, args["n"] + 1)
        heard(args)

    work.register("k", first)
    work.start()
    defer(store, work, 0)
    assert sorted(heard.wait(6)) == [0, 1, 2, 3, 4, 5]


def test_stopping_waits_for_running_jobs(store, work):
    began, ended = threading.Event(), threading.Event()

    def slow(_: Args) -> None:
        began.set()
        time.sleep(0.5)
        ended.set()

    work.register("k", slow)
    work.start()
    defer(store, work, 1)
    assert began.wait(60)
    work.stop()
    assert ended.is_set()


def test_stopping_without_a_start_is_harmless(work):
    work.stop()
    work.stop()


def test_no_worker_survives_a_stop(store, work, open_work, heard):
    before = set(threading.enumerate())
    work.register("k", heard)
    work.start()
    defer(store, work, 1)
    heard.wait(1)
    work.stop()
    assert [
        thread.name for thread in threading.enumerate() if thread not in before and "stoker-job" in thread.name
    ] == []
    defer(store, work, 2)
    heir, heir_heard = open_work(), Heard()
    heir.register("k", heir_heard)
    heir.start()
    assert heir_heard.wait(1) == [2]
    assert heard.calls == [1]


def test_a_kind_with_its_own_threads_delays_no_other_kind(store, work, heard):
    release, began = threading.Event(), {kind: threading.Semaphore(0) for kind in ("own", "shared")}

    def hang(kind: str) -> Callable[[Args], None]:
        def handle(_: Args) -> None:
            began[kind].release()
            release.wait(60)

        return handle

    work.register("own", hang("own"), threads=2)
    work.register("shared", hang("shared"))
    work.register("k", heard)
    work.start()
    try:
        for n in range(6):
            defer(store, work, n, kind="own")
        assert all(began["own"].acquire(timeout=60) for _ in range(2))
        defer(store, work, 1)
        heard.wait(1)
        assert not began["own"].acquire(blocking=False), "it has two threads"
        release.set()
        assert all(began["own"].acquire(timeout=60) for _ in range(4))
        release.clear()
        for n in range(8):
            defer(store, work, n, kind="shared")
        assert began["shared"].acquire(timeout=60)
        defer(store, work, 7, kind="own")
        assert began["own"].acquire(timeout=60)
    finally:
        release.set()
