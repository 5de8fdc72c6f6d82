"""
Jobs on PostgreSQL, by means of Procrastinate: its table, locks, notifications, heartbeats and retries.

A job is deferred on the caller's own connection, so it exists exactly if the transaction commits. The workers have
their own thread and event loop. The kind of a job is its queue, so a process takes only jobs that it has a handler for;
kind and key are its lock. The priority of a job derives from its due time. Without priorities, a job would wait for
every earlier job with the same lock in Procrastinate, even for one that is due later.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import procrastinate
import psycopg
import sqlalchemy as sa
import structlog
from procrastinate.jobs import Job
from procrastinate.schema import SchemaManager
from procrastinate.worker import Worker
from structlog.contextvars import bound_contextvars

from stoker.store.open import Store
from stoker.store.postgresql import driver_url
from stoker.store.tx import Tx
from stoker.work.port import Handler, PermanentFailure, backoff, describe_error

_TASK, _TIDY = "stoker", "stoker.tidy"
_KEPT_HOURS = 72
_CONCURRENCY = 4
#: In addition to the connection that listens. Statements about jobs are short, and handlers use the store's
#: connections.
_CONNECTIONS = 1
#: Seconds between polls for jobs that are scheduled for later; for other jobs, the worker receives a notification.
_POLL = 1.0
#: Seconds between heartbeats, and seconds without a heartbeat after which a process counts as failed.
_HEARTBEAT, _GONE = 3.0, 15.0
#: Seconds before the workers restart after the connection to the database was lost.
_PAUSE = 1.0
#: Priorities have 32 bits: they are seconds since this time.
_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
#: An arbitrary key, the same in every Stoker: only one process at a time applies the schema.
_LOCK = 7_310_544_203
#: Procrastinate selects jobs by lock, and has no index that begins with it.
_INDEX = "CREATE INDEX IF NOT EXISTS stoker_jobs_lock ON procrastinate_jobs (lock)"
#: Take the next job from the index on priority. Without table statistics, the planner would sort all waiting jobs
#: instead: with 2,000 waiting, 50 jobs per second instead of 450.
_PLAN = "SET enable_sort = off; SET enable_bitmapscan = off"
#: Locked, so that a job that another transaction is about to take or cancel does not count as pending.
_IS_PENDING = sa.text("SELECT 1 FROM procrastinate_jobs WHERE lock = :lock AND status = 'todo' LIMIT 1 FOR SHARE")
_CANCEL = sa.text("DELETE FROM procrastinate_jobs WHERE lock = :lock AND status = 'todo'")
_KEEP_ERROR = (
    "UPDATE procrastinate_jobs SET args = jsonb_set(args, '{last_error}', to_jsonb(%(error)s::text)) WHERE id = %(id)s"
)
#: One statement, so that of two processes only one takes a job over. Deleting a worker's row clears its jobs'
#: worker_id.
_TAKE_OVER = (
    "UPDATE procrastinate_jobs SET status = 'todo', attempts = attempts + 1, abort_requested = false"
    " WHERE status = 'doing' AND worker_id IS NULL RETURNING id, lock"
)
_log = structlog.get_logger("stoker.work")


class _Retry(procrastinate.BaseRetryStrategy):
    """Retries a failed job after a pause that increases with its attempts."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> procrastinate.RetryDecision:
        # stop() cancelled the job: another process may run it immediately
        interrupted = isinstance(exception, asyncio.CancelledError)
        at = datetime.now(UTC) + timedelta(seconds=0 if interrupted else backoff(job.attempts))
        return procrastinate.RetryDecision(retry_at=at, priority=_priority(at))


class _Worker(Worker):
    """A worker that the same process can also notify of a job."""

    @classmethod
    def of(cls, app: procrastinate.App, queues: list[str], concurrency: int, *, listens: bool) -> _Worker:
        """Return a worker for these queues that runs at most ``concurrency`` jobs at a time."""
        return cls(
            app,
            queues=queues,
            concurrency=concurrency,
            fetch_job_polling_interval=_POLL,
            install_signal_handlers=False,
            listen_notify=listens,
            delete_jobs="always",
            update_heartbeat_interval=_HEARTBEAT,
            stalled_worker_timeout=_GONE,
        )

    def nudge(self) -> None:
        """Make the worker look for a job now."""
        self._new_job_event.set()


class PostgresQueue:
    """The job queue for PostgreSQL. Implements ``Work``."""

    def __init__(self, store: Store) -> None:
        url = driver_url(store.url).set(drivername="postgresql")
        self._conninfo = url.render_as_string(hide_password=False)
        _apply_schema(self._conninfo)
        # Never opened: jobs are deferred on the callers' connections.
        self._deferring = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())
        self._handlers: dict[str, Handler] = {}
        #: Kinds with their own threads, with the number of threads; and the workers of this process, by kind ("": all
        #: others).
        self._threads: dict[str, int] = {}
        self._workers: dict[str, _Worker] = {}
        self._stopping = threading.Event()
        self._grace = 0.0
        self._thread = threading.Thread(target=self._run, name="stoker-jobs", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        """Insert a job of Procrastinate on the connection of ``tx``."""
        self._deferring.configure_task(
            _TASK,
            queue=kind,
            lock=f"{kind}/{key}",
            schedule_at=at,
            priority=_priority(at or tx.now),
            connection=tx.connection.connection.driver_connection,
        ).defer(args=dict(args))
        if kind in self._threads and at is None:
            tx.after_commit(partial(self._nudge, kind))

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        """Delete waiting jobs with this lock."""
        tx.run(_CANCEL, {"lock": f"{kind}/{key}"})

    def is_pending(self, tx: Tx, kind: str, key: str) -> bool:
        """Return whether a waiting job has this lock."""
        return tx.run(_IS_PENDING, {"lock": f"{kind}/{key}"}).first() is not None

    def register(self, kind: str, handler: Handler, *, threads: int = 0) -> None:
        """Store the handler; ``start`` creates the worker of its kind."""
        self._handlers[kind] = handler
        if threads:
            self._threads[kind] = threads

    def start(self) -> None:
        """Start the thread of the event loop that runs the workers."""
        self._thread.start()

    def stop(self, timeout: float = 5) -> None:
        """Stop the workers; jobs that do not end in time return to the queue."""
        self._grace = timeout * 0.8  # the rest is for returning unfinished jobs to the queue
        self._stopping.set()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has already ended
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                asyncio.run(self._work())
            except Exception as error:
                _log.error("jobs.database_unavailable", error=describe_error(error))
                self._stopping.wait(_PAUSE)

    async def _work(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        app = self._app()
        async with app.open_async():
            shared = [*sorted(self._handlers.keys() - self._threads.keys()), _TIDY]
            self._workers = {"": _Worker.of(app, shared, _CONCURRENCY, listens=True)}
            for kind, threads in self._threads.items():
                self._workers[kind] = _Worker.of(app, [kind], threads, listens=False)
            tending = asyncio.create_task(self._tend(app))
            # type ignored: Procrastinate does not annotate its worker
            runs = [asyncio.ensure_future(worker.run()) for worker in self._workers.values()]  # type: ignore[no-untyped-call]
            try:
                # If one worker fails, all stop, and _run restarts them together.
                await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED)
                self._stop_workers()
                await asyncio.gather(*runs)
            finally:
                tending.cancel()

    def _stop_workers(self) -> None:
        for worker in self._workers.values():
            worker.stop()  # type: ignore[no-untyped-call]  # not annotated by Procrastinate

    def _nudge(self, kind: str) -> None:
        """
        Notify the worker of this kind in this process.

        The worker does not listen itself, because this would cost each process one more connection for each kind.
        """
        worker, loop = self._workers.get(kind), self._loop
        if worker is not None and loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has already ended
                loop.call_soon_threadsafe(worker.nudge)

    def _app(self) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(
            conninfo=self._conninfo, min_size=1, max_size=_CONNECTIONS, configure=_configure
        )
        app = procrastinate.App(connector=connector)
        app.task(name=_TASK, retry=_Retry(), pass_context=True)(self._perform)
        # Also necessary for monitoring: a worker without a periodic task does not detect that its heartbeat or its
        # listener has failed (Procrastinate 3.10: the deferrer ends immediately, and with it the monitor of all side
        # tasks).
        app.periodic(cron="17 4 * * *")(app.task(name=_TIDY, queue=_TIDY, pass_context=True)(_tidy))
        return app

    async def _perform(self, context: procrastinate.JobContext, /, args: Mapping[str, Any], **_last: Any) -> None:
        job = context.job
        with bound_contextvars(job=job.lock):
            try:
                await _in_thread(self._handlers[job.queue], args)
            except PermanentFailure as error:
                _log.error("job.abandoned", error=str(error))
            except Exception as error:
                _log.exception("job.failed", attempts=job.attempts)
                await context.app.connector.execute_query_async(_KEEP_ERROR, id=job.id, error=describe_error(error))
                raise

    async def _tend(self, app: procrastinate.App) -> None:
        """Take over the jobs of processes without a heartbeat, until this process stops; then stop the workers."""
        if self._stopping.is_set():
            self._stop.set()
        while not self._stop.is_set():
            try:
                await app.job_manager.prune_stalled_workers(_GONE)
                for row in await app.connector.execute_query_all_async(_TAKE_OVER):
                    _log.warning("job.taken_over", job=row["lock"])
            except procrastinate.exceptions.ConnectorException as error:
                _log.warning("jobs.stalled_check_failed", error=describe_error(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _HEARTBEAT)
        for worker in self._workers.values():
            worker.shutdown_graceful_timeout = self._grace
        self._stop_workers()


async def _in_thread(handler: Handler, args: Mapping[str, Any]) -> None:
    """
    Run the handler in a daemon thread: unlike a pool's thread, it cannot prevent the process from ending if it hangs.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    context = copy_context()

    def tell(error: BaseException | None) -> None:
        if ended.done():
            return  # the waiting task was cancelled
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    def run() -> None:
        failure: BaseException | None = None
        try:
            context.run(handler, args)
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(tell, failure)

    threading.Thread(target=run, name="stoker-job", daemon=True).start()
    await ended


async def _tidy(context: procrastinate.JobContext, timestamp: int) -> None:  # noqa: ARG001 — Procrastinate names it
    """Delete jobs that an operator ended with Procrastinate's own tools; all others are deleted when they end."""
    await context.app.job_manager.delete_old_jobs(
        _KEPT_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
    )


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.execute(_PLAN)
    await connection.commit()


def _priority(due: datetime) -> int:
    """Return the priority of a job that is due at this time; an earlier job has a higher priority."""
    return max(-int((due - _EPOCH).total_seconds()), -(2**31))


def _apply_schema(conninfo: str) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if row is None or row[0] is None:
            connection.execute(SchemaManager.get_schema())
        connection.execute(_INDEX)
