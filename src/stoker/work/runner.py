"""Jobs on SQLite: a table, and a few threads of the one process that may use it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from stoker.store import jobs
from stoker.store.jobs import Job
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work.port import GiveUp, Handler, backoff, in_words

_THREADS = 4
#: Seconds. Nothing is looked for so often; it bounds what a clock set anew can do to a deadline.
_LONGEST_SLEEP = 60.0
_log = structlog.get_logger("stoker.work")


class Runner:
    """Each thread takes the job that is due first, or sleeps until that is due or a commit brings another."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._handlers: dict[str, Handler] = {}
        self._changed = threading.Condition()
        #: (kind, key) → seq of the job under way: no second one of these begins.
        self._running: dict[tuple[str, str], int] = {}
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        jobs.add(tx, kind, key, args, at or tx.now)
        tx.after_commit(self._wake_one)

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        jobs.cancel(tx, kind, key, but=self._running.get((kind, key)))

    def waits(self, tx: Tx, kind: str, key: str) -> bool:
        return jobs.waits(tx, kind, key, but=self._running.get((kind, key)))

    def register(self, kind: str, handler: Handler) -> None:
        self._handlers[kind] = handler

    def start(self) -> None:
        # Daemons: a handler that hangs must not keep the process from ending.
        self._threads = [
            threading.Thread(target=self._run, name=f"stoker-job-{n}", daemon=True) for n in range(_THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _wake_one(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while not self._stopping:
            try:
                job = self._next()
                if job is not None:
                    self._do(job)
            except Exception:
                _log.exception("cannot read or write jobs")
                time.sleep(1)

    def _next(self) -> Job | None:
        """The next job, when it is due; None: the runner stops."""
        with self._changed:
            while not self._stopping:
                job, pause = self._nearest()
                if job is not None and pause <= 0:
                    self._running[job.kind, job.key] = job.seq
                    self._changed.notify()  # another may be due as well
                    return job
                self._changed.wait(pause)
        return None

    def _nearest(self) -> tuple[Job | None, float]:
        """The job due first of those that may begin, and the seconds until then."""
        with self._store.read() as tx:
            job = jobs.nearest(tx, list(self._handlers), list(self._running))
        if job is None:
            return None, _LONGEST_SLEEP
        return job, min((job.due - datetime.now(UTC)).total_seconds(), _LONGEST_SLEEP)

    def _do(self, job: Job) -> None:
        try:
            failure = self._failure(job)
            if failure is None:
                self._store.write(lambda tx: jobs.done(tx, job.seq))
            else:
                at = datetime.now(UTC) + timedelta(seconds=backoff(job.attempts))
                self._store.write(lambda tx: jobs.again(tx, job.seq, at, failure))
        finally:
            with self._changed:
                del self._running[job.kind, job.key]
                self._changed.notify()

    def _failure(self, job: Job) -> str | None:
        try:
            self._handlers[job.kind](job.args)
        except GiveUp as error:
            _log.error("gave a job up", kind=job.kind, subject=job.key, error=str(error))
        except Exception as error:
            _log.exception("a job failed and is tried again", kind=job.kind, subject=job.key, attempts=job.attempts)
            return in_words(error)
        return None
