"""Jobs on SQLite: a table, and threads of the one process that uses the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from stoker.store import jobs
from stoker.store.jobs import Job
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work.port import Handler, PermanentFailure, backoff, describe_error

_THREADS = 4
#: Seconds. The longest time between two reads of the table; it bounds the delay of a deadline after a clock change.
_LONGEST_SLEEP = 60.0
_log = structlog.get_logger("stoker.work")


class _Group:
    """Threads that serve certain kinds of jobs and no others."""

    def __init__(self, threads: int) -> None:
        self.changed = threading.Condition()
        self.threads = threads
        self.kinds: list[str] = []
        #: (kind, key) → seq of the running job: no second job of this kind and key starts.
        self.running: dict[tuple[str, str], int] = {}


class SqliteQueue:
    """
    The job queue for SQLite. Implements ``Work``.

    Each thread takes the first due job of its kinds. Otherwise it sleeps until a job is due or a commit adds one.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._handlers: dict[str, Handler] = {}
        self._shared = _Group(_THREADS)
        #: The group of threads that serves each kind of job.
        self._groups: dict[str, _Group] = {}
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        """Insert a row; after the commit, wake a thread."""
        jobs.add(tx, kind, key, args, at or tx.now)
        tx.after_commit(partial(self._wake_one, kind))

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        """Delete the rows of this kind and key, except for the running job."""
        jobs.cancel(tx, kind, key, but=self._under_way(kind, key))

    def is_pending(self, tx: Tx, kind: str, key: str) -> bool:
        """Return whether a row of this kind and key exists, except for the running job."""
        return jobs.is_pending(tx, kind, key, but=self._under_way(kind, key))

    def register(self, kind: str, handler: Handler, *, threads: int = 0) -> None:
        """Store the handler; a kind with ``threads`` gets a group of its own."""
        self._handlers[kind] = handler
        self._groups[kind] = _Group(threads) if threads else self._shared
        self._groups[kind].kinds.append(kind)

    def start(self) -> None:
        """Start the threads of all groups."""
        # Daemon threads: a handler that hangs must not prevent the process from ending.
        self._threads = [
            threading.Thread(target=self._run, args=(group,), name=f"stoker-job-{n}", daemon=True)
            for group in self._each_group()
            for n in range(group.threads)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5) -> None:
        """Stop all threads; a job that does not end in time runs again after the next start."""
        self._stopping = True
        for group in self._each_group():
            with group.changed:
                group.changed.notify_all()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _each_group(self) -> list[_Group]:
        return list({id(group): group for group in (self._shared, *self._groups.values())}.values())

    def _wake_one(self, kind: str) -> None:
        group = self._groups.get(kind)
        if group is not None:
            with group.changed:
                group.changed.notify()

    def _under_way(self, kind: str, key: str) -> int | None:
        group = self._groups.get(kind)
        return group.running.get((kind, key)) if group is not None else None

    def _run(self, group: _Group) -> None:
        while not self._stopping:
            try:
                job = self._next(group)
                if job is not None:
                    self._do(job, group)
            except Exception:
                _log.exception("jobs.unavailable")
                time.sleep(1)

    def _next(self, group: _Group) -> Job | None:
        """Wait until a job is due and return it; return None when the queue stops."""
        with group.changed:
            while not self._stopping:
                job, pause = self._nearest(group)
                if job is not None and pause <= 0:
                    group.running[job.kind, job.key] = job.seq
                    group.changed.notify()  # another job may be due as well
                    return job
                group.changed.wait(pause)
        return None

    def _nearest(self, group: _Group) -> tuple[Job | None, float]:
        """Return the first due job of those that may start, and the seconds until it is due."""
        with self._store.read() as tx:
            job = jobs.nearest(tx, group.kinds, list(group.running))
        if job is None:
            return None, _LONGEST_SLEEP
        return job, min((job.due - datetime.now(UTC)).total_seconds(), _LONGEST_SLEEP)

    def _do(self, job: Job, group: _Group) -> None:
        try:
            failure = self._failure(job)
            if failure is None:
                self._store.write(lambda tx: jobs.complete(tx, job.seq))
            else:
                at = datetime.now(UTC) + timedelta(seconds=backoff(job.attempts))
                self._store.write(lambda tx: jobs.retry(tx, job.seq, at, failure))
        finally:
            with group.changed:
                del group.running[job.kind, job.key]
                group.changed.notify()

    def _failure(self, job: Job) -> str | None:
        with bound_contextvars(job=f"{job.kind}/{job.key}"):
            try:
                self._handlers[job.kind](job.args)
            except PermanentFailure as error:
                _log.error("job.abandoned", error=str(error))
            except Exception as error:
                _log.exception("job.failed", attempts=job.attempts)
                return describe_error(error)
        return None
