"""Several processes that share a queue, and processes that end in the middle of their jobs."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.store.open import Store
from stoker.work import Work
from support import query
from support.waiting import until
from support.work import count_jobs

pytestmark = pytest.mark.slow

#: Runs jobs and appends their begin and end to a file. The job "hang" never ends, "meet" when three processes run it.
_WORKER = """
import os, sys, time
from stoker.store.open import Store
from stoker.work import Work
store, path = Store(sys.argv[1]), sys.argv[2]
def record(text):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{text} {os.getpid()}\\n".encode())
    os.close(file)
def handle(args):
    record(f"begin {args['key']} {args['n']}")
    if args["n"] == "hang":
        time.sleep(600)
    while args["n"] == "meet" and len({line.split()[3] for line in open(path) if " meet " in line}) < 3:
        time.sleep(0.02)
    time.sleep(0.002)
    record(f"end {args['key']} {args['n']}")
work = Work(store)
work.register("k", handle)
store.start_listener()
work.start()
os.write(sys.stdout.fileno(), b"\\nready\\n")
sys.stdin.read()
work.stop()
"""


class Workers:
    """Processes that run jobs of one database."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self.path = path
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, count: int) -> None:
        new = [
            subprocess.Popen(
                [sys.executable, "-c", _WORKER, self.url, str(self.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        self.processes += new
        for process in new:
            assert process.stdout is not None
            # The log goes to the same stream, a line and its end apart: a job may begin before the process is ready.
            assert "ready\n" in iter(process.stdout.readline, "")

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def lines(self) -> list[list[str]]:
        """Return what the handlers have recorded: begin or end, key, number, process id."""
        return [line.split() for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def workers(store: Store, tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(store.url, tmp_path / "record")
    yield workers
    workers.stop()


#: Where processes share a database.
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def defer(store: Store, keys: list[str]) -> None:
    work = Work(store)

    def do(tx):
        for n, key in enumerate(keys):
            work.defer(tx, "k", key, {"key": key, "n": n})

    store.write(do)


@ON_POSTGRESQL
def test_processes_share_the_jobs_and_a_key_never_runs_twice_at_a_time(store, workers):
    workers.start(3)
    work = Work(store)
    # More than two processes have threads for.
    for n in range(9):
        store.write(lambda tx, n=n: work.defer(tx, "k", f"meet{n}", {"key": f"meet{n}", "n": "meet"}))
    defer(store, [f"key{n % 20}" for n in range(600)])
    until(lambda: count_jobs(store) == 0)
    lines = workers.lines()
    assert Counter(n for word, _, n, _ in lines if word == "end") == Counter([*map(str, range(600)), *["meet"] * 9])
    running: set[str] = set()
    for word, key, *_ in lines:
        assert (key in running) == (word == "end")
        running ^= {key}


def test_another_process_takes_over_the_jobs_of_a_killed_one(store, workers):
    """The killed process runs three jobs, and a fourth waits for one of the same key. None is lost, no other waits."""
    workers.start(1)
    work = Work(store)
    for key in "abc":
        store.write(lambda tx, key=key: work.defer(tx, "k", key, {"key": key, "n": "hang"}))
    until(lambda: len(workers.lines()) == 3)
    store.write(lambda tx: work.defer(tx, "k", "a", {"key": "a", "n": "after"}))
    workers.kill(workers.processes[0])
    assert count_jobs(store) == 4
    store.write(lambda tx: work.defer(tx, "k", "e", {"key": "e", "n": "new"}))
    workers.start(1)
    until(lambda: ["end", "e", "new"] in [line[:3] for line in workers.lines()] and count_jobs(store) == 4)
    until(lambda: Counter(key for _, key, n, _ in workers.lines() if n == "hang") == dict.fromkeys("abc", 2), 120)
    assert ["a", "after"] not in [line[1:3] for line in workers.lines()]
    with store.read() as tx:
        taken_over = query.rows(tx, "SELECT attempts, last_error FROM jobs WHERE state = 'RUNNING'")
    assert taken_over == [(1, "its lease has expired")] * 3


def test_a_process_that_stops_returns_its_jobs_to_the_queue_at_once(store):
    """Also the job whose handler does not end. Another process need not wait until the lease expires."""
    begun, release, done = threading.Event(), threading.Event(), threading.Event()
    first, second = Work(store), Work(store)

    def hang(_):
        begun.set()
        release.wait(60)

    first.register("k", hang)
    second.register("k", lambda _: done.set())
    first.start()
    store.write(lambda tx: first.defer(tx, "k", "a", {}))
    try:
        assert begun.wait(60)
        first.stop(timeout=0.5)
        with store.read() as tx:
            assert query.rows(tx, "SELECT state, owner, attempts FROM jobs") == [("WAITING", None, 0)]
        second.start()
        assert done.wait(60)
    finally:
        release.set()
        second.stop()
