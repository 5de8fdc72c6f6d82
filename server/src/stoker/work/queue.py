"""The job queue, as the other packages use it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from stoker.store import jobs
from stoker.store.notifier import JOBS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work.dispatcher import Dispatcher, Handler, Pool

#: Threads of a process that all kinds of jobs share.
_SHARED_THREADS = 4


class Work:
    """
    The durable job queue of a database.

    A job has a kind, which selects its handler, and a key, which identifies its subject. A job runs at least once, so a
    handler must be idempotent::

        def delete_user(args: Mapping[str, Any]) -> None:
            keystone.delete_user(args["user_id"])

        work = Work(store)
        work.register("user.delete", delete_user)
        work.start()
        store.write(lambda tx: work.defer(tx, "user.delete", user_id, {"user_id": user_id}))

    Any number of processes may serve the queue of a PostgreSQL database. One process serves that of an SQLite database.
    """

    def __init__(self, store: Store) -> None:
        """Open the queue of the store's database. No job runs before ``start``."""
        self._shared = Pool(_SHARED_THREADS)
        self._all_pools = [self._shared]
        #: The pool of threads that serves each kind of job.
        self._pools: dict[str, Pool] = {}
        self._dispatcher = Dispatcher(store, self._all_pools)

    def register(self, kind: str, handler: Handler, *, threads: int = 0) -> None:
        """
        Register the handler of a kind of job; call it before ``start``.

        ``handler`` receives the ``args`` of a job, outside any transaction. If it raises an exception, the job is
        retried after pauses of 1, 2, 4 … up to 300 seconds, except for PermanentFailure. Jobs of a kind without a
        handler in this process wait for a process that registers one.

        ``threads`` is the number of threads, in each process, that serve only this kind. Use it where jobs wait for
        external services and must not delay other jobs. With 0, the kind shares threads with all other kinds.
        """
        pool = self._shared
        if threads:
            pool = Pool(threads)
            self._all_pools.append(pool)
        pool.handlers[kind] = handler
        self._pools[kind] = pool

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        """
        Add a job, which runs after ``tx`` has committed, and not before the time ``at`` on the database's clock.

        ``kind`` has at most 64 characters and ``key`` at most 255. ``args`` must be serializable as JSON. Jobs of one
        kind and key do not overlap, unless a process continues a job after it has lost its lease: a handler must
        tolerate this.
        """
        jobs.add(tx, kind, key, args, at)
        self._wake(tx, kind, at)

    def defer_by(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], at: datetime) -> None:
        """
        Let a job of this kind and key start at the time ``at`` at the latest.

        A waiting job keeps its ``args`` and moves forward if it is due later. Without one, a new job is added.
        """
        if jobs.hasten(tx, at, kind, key):
            self._wake(tx, kind, at)
        else:
            self.defer(tx, kind, key, args, at=at)

    def _wake(self, tx: Tx, kind: str, at: datetime | None) -> None:
        pool = self._pools.get(kind)
        if at is None and (pool is None or not pool.free):
            tx.notify(JOBS_TOPIC)  # another process may have a free thread
        if pool is not None:
            delay = 0.0 if at is None else (at - tx.now).total_seconds()
            tx.after_commit(partial(self._dispatcher.wake, pool, delay))

    def defer_once(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        """
        Defer a job in place of those of the same kind and key that have not started, so it runs once, with the last
        ``args``. The arguments are those of ``defer``.
        """
        self.cancel(tx, kind, key)
        self.defer(tx, kind, key, args, at=at)

    #: ``cancel(tx, kind, key)``: delete the jobs of this kind and key that have not started or wait for a retry. A
    #: running job continues.
    cancel = staticmethod(jobs.cancel)
    #: ``is_pending(tx, kind, key)``: whether a job of this kind and key has not started or waits for a retry. Such a
    #: job sees the data that the write transaction ``tx`` commits.
    is_pending = staticmethod(jobs.is_pending)

    def count_threads(self) -> tuple[int, int]:
        """Return the number of free threads for jobs, and of all."""
        return sum(pool.free for pool in self._all_pools), sum(pool.size for pool in self._all_pools)

    def start(self) -> None:
        """Start to run jobs, in threads of this process."""
        self._dispatcher.start()

    def stop(self, timeout: float = 5) -> None:
        """
        Start no more jobs and wait up to ``timeout`` seconds for running jobs.

        A job that does not end in this time returns to the queue: another process, or the next start, runs it again.
        """
        self._dispatcher.stop(timeout)
