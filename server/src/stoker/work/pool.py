"""Threads that run jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from stoker.background_thread import BackgroundThread
from stoker.store.jobs import Job

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
