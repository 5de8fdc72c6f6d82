"""
Commits per second of several processes on one PostgreSQL, while every commit notifies.

    .venv/bin/python -m bench.notifications postgresql://… [--processes 3] [--threads 8] [--seconds 5]

Each process has a store with its own listener, as ``stoker serve`` has; its threads change one server's document per
transaction. Besides the rate, the time until a change is known in another process: from before its write to the
listener's call there, one write at a time on idle processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from multiprocessing.synchronize import Barrier
from typing import Any

from stoker.store import migrate
from stoker.store.notifier import server_topic
from stoker.store.open import Store

_PROBES = 200


def _start(store: Store) -> None:
    """Start the store's listener, and wait until it works."""
    store.start_listener()
    until = time.monotonic() + 60
    while any(store.notifier_problems().values()):
        if time.monotonic() > until:
            raise SystemExit(f"the notifier does not work: {store.notifier_problems()}")
        time.sleep(0.05)


def _load(url: str, number: int, threads: int, seconds: float, start: Barrier, results: Any) -> None:
    """Commit for ``seconds`` in one process, and put the number of commits into ``results``."""
    store = Store(url)
    _start(store)
    counts = [0] * threads

    def commit(thread: int, end: float) -> None:
        server_id = f"server-{number}-{thread}"
        while time.monotonic() < end:
            store.write(lambda tx: tx.bump_document(server_id))
            counts[thread] += 1

    commit(0, time.monotonic() + 0.5)  # opens connections and prepares statements
    counts[0] = 0
    start.wait(60)
    end = time.monotonic() + seconds
    workers = [threading.Thread(target=commit, args=(thread, end)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    results.put(sum(counts))
    start.wait(60)
    store.close()


def commits_per_second(url: str, processes: int, threads: int, seconds: float) -> float:
    """Return the rate of commits of all processes together."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(processes), context.Queue()
    loads = [
        context.Process(target=_load, args=(url, number, threads, seconds, start, results))
        for number in range(processes)
    ]
    for load in loads:
        load.start()
    total = sum(results.get(timeout=seconds + 60) for _ in loads)
    for load in loads:
        load.join()
    return float(total / seconds)


def latencies(url: str) -> Sequence[float]:
    """Return the milliseconds from writes until the subscriber of another store is called."""
    here, there = Store(url), Store(url)
    arrived = threading.Event()
    there.notifier.subscribe(lambda topics: arrived.set() if server_topic("probe") in topics else None)
    for store in (here, there):
        _start(store)
    measured: list[float] = []
    try:
        for _ in range(_PROBES):
            arrived.clear()
            begun = time.monotonic()
            here.write(lambda tx: tx.bump_document("probe"))
            if not arrived.wait(20):
                raise SystemExit("a notification was lost")
            measured.append((time.monotonic() - begun) * 1000)
    finally:
        here.close()
        there.close()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="a database that may be written to")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with closing(Store(options.url)) as store, store.session() as session:
        migrate.upgrade(session, store.dialect)
    rate = commits_per_second(options.url, options.processes, options.threads, options.seconds)
    measured = sorted(latencies(options.url))
    print(f"{options.processes} processes of {options.threads} threads: {rate:.0f} commits/s")
    print(f"known elsewhere after {statistics.median(measured):.2f} ms (median), {measured[-1]:.2f} ms (longest)")


if __name__ == "__main__":
    main()
