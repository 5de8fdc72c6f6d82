"""
The threads that run jobs, and the dispatcher: one thread per process that reads and writes the table of jobs.

In one transaction, it deletes the jobs that have ended and takes as many due jobs as threads are free. Then it sleeps
until the next job is due, a job ends, or a commit adds a job. A commit of another process wakes it by a notification,
but only if that process has more due jobs than free threads.

A process owns the jobs that it runs for the time of a lease, and renews its leases. The jobs of a killed process
return to the queue when their leases expire.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from stoker.background_thread import BackgroundThread
from stoker.failures import backoff
from stoker.store import jobs
from stoker.store.connection import UniqueViolation
from stoker.store.jobs import Job
from stoker.store.notifier import JOBS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx

#: A handler receives the ``args`` of a job, and runs outside any transaction.
Handler = Callable[[Mapping[str, Any]], None]
#: Receives a job that has ended, and its error if it must be retried.
OnEnd = Callable[["Pool", Job, str | None], None]

_log = structlog.get_logger("stoker.work")


class PermanentFailure(Exception):
    """Raised by a handler to drop a job that no repetition can complete."""


class Pool:
    """Threads that run the jobs of certain kinds. The dispatcher guards ``free``, ``look_at`` and ``committed``."""

    def __init__(self, size: int) -> None:
        """Create a pool of ``size`` threads, which do not run yet."""
        self.size = size
        self.handlers: dict[str, Handler] = {}
        #: Threads that run no job.
        self.free = size
        #: When the dispatcher looks for jobs, on the monotonic clock.
        self.look_at = 0.0
        #: Due jobs that this process has committed since the dispatcher last looked.
        self.committed = 0
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()

    @property
    def due_at(self) -> float:
        """When the dispatcher can give the pool a job: not before a thread is free."""
        return self.look_at if self.free else math.inf

    def start(self, on_end: OnEnd) -> list[BackgroundThread]:
        """Start the threads and return them. ``on_end`` is called in the thread of the job."""
        threads = [BackgroundThread(f"stoker-job-{n}", partial(self._serve, on_end)) for n in range(self.size)]
        for thread in threads:
            thread.start()
        return threads

    def run(self, job: Job) -> None:
        """Run a job in a free thread."""
        self._inbox.put(job)

    def stop(self) -> None:
        """End each thread after its current job."""
        for _ in range(self.size):
            self._inbox.put(None)

    def _serve(self, on_end: OnEnd) -> None:
        while (job := self._inbox.get()) is not None:
            on_end(self, job, self._perform(job))

    def _perform(self, job: Job) -> str | None:
        with bound_contextvars(job=f"{job.kind}/{job.key}"):
            try:
                self.handlers[job.kind](job.args)
            except PermanentFailure as error:
                _log.error("job.abandoned", error=str(error))
            except Exception as error:
                _log.exception("job.failed", attempts=job.attempts)
                return f"{type(error).__name__}: {error}".replace("\0", "")[:2000]
        return None


#: Seconds between renewals of leases. Also the longest time between two reads of the table, which finds the jobs that
#: another process did not start.
_TICK = 3.0
#: Seconds of a lease. SQLite is used by one process, so all other owners are processes that have ended.
_LEASE = {"postgresql": 15.0, "sqlite": 0.0}
#: Seconds until the dispatcher looks again for a due job that another transaction has locked or taken.
_LOCKED_PAUSE = 0.02
#: Seconds that the dispatcher waits after an error of the database.
_ERROR_PAUSE = 1.0
#: The part of the time for stopping in which running jobs may end. The rest is for returning the others to the queue.
_STOP_SHARE = 0.8


class Dispatcher:
    """Gives due jobs to the threads of ``pools``, and stores how the jobs end."""

    def __init__(self, store: Store, pools: Sequence[Pool]) -> None:
        """Create a dispatcher for these pools, which may still grow in number until ``start``."""
        self._store = store
        self._pools = pools
        self._owner = secrets.token_hex(8)
        self._lease = _LEASE[store.dialect]
        #: Guards the pools and the following attributes.
        self._changed = threading.Condition()
        #: Jobs that have ended and their errors, until they are stored.
        self._ended: list[tuple[Job, str | None]] = []
        #: The ``seq`` of the jobs that are in threads or have ended without being stored.
        self._running: set[int] = set()
        self._renew_at = 0.0
        self._stopping = False
        self._stop_at = 0.0
        self._threads: list[BackgroundThread] = []

    def start(self) -> None:
        """Start all threads."""
        self._threads = [thread for pool in self._pools for thread in pool.start(self._on_end)]
        dispatcher = BackgroundThread("stoker-jobs", self._run)
        self._threads.append(dispatcher)
        self._store.notifier.subscribe(self._on_notification, JOBS_TOPIC)
        dispatcher.start()

    def stop(self, timeout: float) -> None:
        """Start no more jobs, wait up to ``timeout`` seconds for running ones, and return the others to the queue."""
        until = time.monotonic() + timeout
        with self._changed:
            self._stopping = True
            self._stop_at = time.monotonic() + timeout * _STOP_SHARE
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def wake(self, pool: Pool, delay: float) -> None:
        """Give the pool a job that this process has committed and that is due in ``delay`` seconds."""
        look_at = time.monotonic() + delay
        with self._changed:
            pool.committed += delay <= 0
            if look_at < pool.look_at:
                pool.look_at = look_at
                self._changed.notify_all()

    def _on_notification(self, _: Mapping[str, int]) -> None:
        with self._changed:
            for pool in self._pools:
                pool.look_at = 0.0
            self._changed.notify_all()

    def _on_end(self, pool: Pool, job: Job, error: str | None) -> None:
        self._store.metrics.count_job(job.kind, has_failed=error is not None)
        with self._changed:
            self._ended.append((job, error))
            pool.free += 1
            pool.look_at = 0.0
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._stopping:
            ready = self._wait()
            try:
                self._exchange(ready)
                continue
            except UniqueViolation:
                pause = _LOCKED_PAUSE  # another process took a job of the same kind and key at the same time
            except Exception:
                _log.exception("jobs.unavailable")
                pause = _ERROR_PAUSE
            with self._changed:
                for pool in ready:
                    pool.look_at = 0.0
                self._changed.wait_for(lambda: self._stopping, pause)
        self._end()

    def _wait(self) -> list[Pool]:
        """Wait until there is something to do, and return the pools for which the dispatcher has to look for jobs."""
        with self._changed:
            while True:
                now = time.monotonic()
                ready = [pool for pool in self._pools if pool.due_at <= now]
                if ready or self._ended or self._stopping or now >= self._renew_at:
                    break
                self._changed.wait(min(self._renew_at, *(pool.due_at for pool in self._pools)) - now)
            for pool in ready:
                pool.look_at = math.inf
            return ready

    def _exchange(self, ready: Sequence[Pool]) -> None:
        """In one transaction, store the jobs that have ended, renew the leases and take jobs for these pools."""
        ended, now = list(self._ended), time.monotonic()
        renews = now >= self._renew_at

        def do(tx: Tx) -> tuple[list[tuple[str, str]], list[tuple[Pool, int, list[Job], float]]]:
            expired = self._renew(tx) if renews else []
            self._store_ended(tx, ended)
            return expired, [(pool, pool.committed, *self._take(tx, pool)) for pool in ready]

        # Not durable: what a crash undoes, runs again. Waiting for the disk would delay every job.
        expired, taken = self._store.write(do, durable=False)
        for kind, key in expired:
            _log.warning("job.taken_over", job=f"{kind}/{key}")
        with self._changed:
            self._renew_at = now + _TICK if renews else self._renew_at
            del self._ended[: len(ended)]
            self._running.difference_update(job.seq for job, _ in ended)
            for pool, counted, new, pause in taken:
                pool.look_at = min(pool.look_at, time.monotonic() + pause)
                pool.committed -= counted
                if self._stopping:
                    continue  # _end returns the jobs to the queue
                pool.free -= len(new)
                self._running.update(job.seq for job in new)
                for job in new:
                    pool.run(job)
            # Committed meanwhile, when threads were free: their transactions have announced nothing.
            is_short = any(pool.committed and not pool.free for pool in ready)
        if is_short:
            self._store.write(lambda tx: tx.notify(JOBS_TOPIC), durable=False)

    def _renew(self, tx: Tx) -> list[tuple[str, str]]:
        running = list(self._running)
        jobs.renew(tx, self._owner, running, self._lease)
        return jobs.release_expired(tx, running)

    def _store_ended(self, tx: Tx, ended: Sequence[tuple[Job, str | None]]) -> None:
        for job, error in ended:
            if error is None:
                jobs.complete(tx, self._owner, job.seq)
            else:
                jobs.retry(tx, self._owner, job.seq, backoff(job.attempts), error)

    def _take(self, tx: Tx, pool: Pool) -> tuple[list[Job], float]:
        """Return jobs for the pool's free threads, and the seconds until the dispatcher has to look again."""
        free, kinds = pool.free, list(pool.handlers)
        if pool.committed > free:
            tx.notify(JOBS_TOPIC)
        taken = jobs.take(tx, self._owner, kinds, free, self._lease)
        if len(taken) == free:
            return taken, math.inf  # the end of a job is the next reason to look
        return taken, max(jobs.seconds_until_due(tx, kinds, _TICK), 0.0 if taken else _LOCKED_PAUSE)

    def _end(self) -> None:
        """Wait for running jobs, return the others to the queue, and end the threads."""
        with self._changed:
            self._changed.wait_for(self._is_idle, max(0.0, self._stop_at - time.monotonic()))
            ended = list(self._ended)

        def do(tx: Tx) -> None:
            self._store_ended(tx, ended)
            jobs.release(tx, self._owner)

        try:
            self._store.write(do)
        except Exception:
            _log.exception("jobs.unavailable")  # the leases expire
        for pool in self._pools:
            pool.stop()

    def _is_idle(self) -> bool:
        return all(pool.free == pool.size for pool in self._pools)
