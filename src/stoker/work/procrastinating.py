"""
Jobs on PostgreSQL: Procrastinate's table, locks, notifications, heartbeats and retries.

Deferring runs on the caller's own connection, so the job is there exactly when the transaction is. The worker has a
thread and an event loop of its own. A job's kind is its queue, so that a process takes only what it knows to do; kind
and key are its lock. Its priority is the time it is due: Procrastinate lets a job wait for every earlier one of
its lock, even for one that is scheduled for later, unless its priority is higher.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import procrastinate
import psycopg
import sqlalchemy as sa
import structlog
from procrastinate.jobs import Job
from procrastinate.schema import SchemaManager
from procrastinate.worker import Worker

from stoker.store.open import Store
from stoker.store.postgresql import driver_url
from stoker.store.tx import Tx
from stoker.work.port import GiveUp, Handler, backoff, in_words

_TASK, _TIDY = "stoker", "stoker.tidy"
_KEPT_HOURS = 72
_CONCURRENCY = 4
#: Seconds between looks at jobs that are scheduled for later; others are notified.
_POLL = 1.0
#: Seconds between signs of life, and without one until a process counts as gone.
_HEARTBEAT, _GONE = 3.0, 15.0
#: Before the worker begins anew when the database went away.
_PAUSE = 1.0
#: Priorities are 32 bits: seconds from here.
_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
#: Any number, as long as every Stoker takes the same: one of them applies the schema.
_LOCK = 7_310_544_203
#: Procrastinate looks jobs up by lock, and has no index that begins with it.
_INDEX = "CREATE INDEX IF NOT EXISTS stoker_jobs_lock ON procrastinate_jobs (lock)"
#: Take the next job from the index on priority instead of sorting all that wait, as the planner does while the table
#: has no statistics: with 2,000 waiting, 450 jobs a second instead of 50.
_PLAN = "SET enable_sort = off; SET enable_bitmapscan = off"
#: Locked: one that a transaction under way is about to take or to call off does not wait.
_WAITS = sa.text("SELECT 1 FROM procrastinate_jobs WHERE lock = :lock AND status = 'todo' LIMIT 1 FOR SHARE")
_CANCEL = sa.text("DELETE FROM procrastinate_jobs WHERE lock = :lock AND status = 'todo'")
_KEEP_ERROR = (
    "UPDATE procrastinate_jobs SET args = jsonb_set(args, '{last_error}', to_jsonb(%(error)s::text)) WHERE id = %(id)s"
)
#: One statement, so that of two processes that take over only one does: deleting a worker's row has set its jobs free.
_TAKE_OVER = (
    "UPDATE procrastinate_jobs SET status = 'todo', attempts = attempts + 1, abort_requested = false"
    " WHERE status = 'doing' AND worker_id IS NULL RETURNING id, lock"
)
_log = structlog.get_logger("stoker.work")


class _Retry(procrastinate.BaseRetryStrategy):
    def get_retry_decision(self, *, exception: BaseException, job: Job) -> procrastinate.RetryDecision:
        interrupted = isinstance(exception, asyncio.CancelledError)  # by a stop: whoever is there may go on at once
        at = datetime.now(UTC) + timedelta(seconds=0 if interrupted else backoff(job.attempts))
        return procrastinate.RetryDecision(retry_at=at, priority=_priority(at))


class ProcrastinateWork:
    def __init__(self, store: Store) -> None:
        url = driver_url(store.url).set(drivername="postgresql")
        self._conninfo = url.render_as_string(hide_password=False)
        _apply_schema(self._conninfo)
        # Never opened: jobs are deferred on the callers' connections.
        self._deferring = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())
        self._handlers: dict[str, Handler] = {}
        self._stopping = threading.Event()
        self._grace = 0.0
        self._thread = threading.Thread(target=self._run, name="stoker-jobs", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        self._deferring.configure_task(
            _TASK,
            queue=kind,
            lock=f"{kind}/{key}",
            schedule_at=at,
            priority=_priority(at or tx.now),
            connection=tx.connection.connection.driver_connection,
        ).defer(args=dict(args))

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        tx.run(_CANCEL, {"lock": f"{kind}/{key}"})

    def waits(self, tx: Tx, kind: str, key: str) -> bool:
        return tx.run(_WAITS, {"lock": f"{kind}/{key}"}).first() is not None

    def register(self, kind: str, handler: Handler) -> None:
        self._handlers[kind] = handler

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5) -> None:
        self._grace = timeout * 0.8  # the rest is for putting back what did not end
        self._stopping.set()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # its loop has ended already
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                asyncio.run(self._work())
            except Exception as error:
                _log.error("jobs wait for the database", error=in_words(error))
                self._stopping.wait(_PAUSE)

    async def _work(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        app = self._app()
        async with app.open_async():
            worker = Worker(
                app,
                queues=[*sorted(self._handlers), _TIDY],
                concurrency=_CONCURRENCY,
                fetch_job_polling_interval=_POLL,
                install_signal_handlers=False,
                delete_jobs="always",
                update_heartbeat_interval=_HEARTBEAT,
                stalled_worker_timeout=_GONE,
            )
            tending = asyncio.create_task(self._tend(app, worker))
            try:
                await worker.run()  # type: ignore[no-untyped-call]
            finally:
                tending.cancel()

    def _app(self) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(
            conninfo=self._conninfo, min_size=1, max_size=_CONCURRENCY, configure=_configure
        )
        app = procrastinate.App(connector=connector)
        app.task(name=_TASK, retry=_Retry(), pass_context=True)(self._perform)
        # Besides its use: a worker without any periodic task does not notice when its heartbeat or its listening
        # fails (3.10: the deferrer ends at once, and with it the monitor of all side tasks).
        app.periodic(cron="17 4 * * *")(app.task(name=_TIDY, queue=_TIDY, pass_context=True)(_tidy))
        return app

    async def _perform(self, context: procrastinate.JobContext, /, args: Mapping[str, Any], **_last: Any) -> None:
        job = context.job
        try:
            await _in_thread(self._handlers[job.queue], args)
        except GiveUp as error:
            _log.error("gave a job up", job=job.lock, error=str(error))
        except Exception as error:
            _log.exception("a job failed and is tried again", job=job.lock, attempts=job.attempts)
            await context.app.connector.execute_query_async(_KEEP_ERROR, id=job.id, error=in_words(error))
            raise

    async def _tend(self, app: procrastinate.App, worker: Worker) -> None:
        """Take over the jobs of processes that give no sign of life any more, until this one is to stop."""
        if self._stopping.is_set():
            self._stop.set()
        while not self._stop.is_set():
            try:
                await app.job_manager.prune_stalled_workers(_GONE)
                for row in await app.connector.execute_query_all_async(_TAKE_OVER):
                    _log.warning("took over a job whose process is gone", job=row["lock"])
            except procrastinate.exceptions.ConnectorException as error:
                _log.warning("cannot look for stalled jobs", error=in_words(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _HEARTBEAT)
        worker.shutdown_graceful_timeout = self._grace
        worker.stop()  # type: ignore[no-untyped-call]


async def _in_thread(handler: Handler, args: Mapping[str, Any]) -> None:
    """In a daemon thread: unlike a pool's, a handler that hangs there does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if ended.done():
            return  # nobody waits any more
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    def run() -> None:
        failure: BaseException | None = None
        try:
            handler(args)
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(tell, failure)

    threading.Thread(target=run, name="stoker-job", daemon=True).start()
    await ended


async def _tidy(context: procrastinate.JobContext, timestamp: int) -> None:  # noqa: ARG001 — Procrastinate names it
    """Remove what an operator ended with Procrastinate's own tools; all else is deleted as it ends."""
    await context.app.job_manager.delete_old_jobs(
        _KEPT_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
    )


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.execute(_PLAN)
    await connection.commit()


def _priority(due: datetime) -> int:
    """Higher for what is due earlier."""
    return max(-int((due - _EPOCH).total_seconds()), -(2**31))


def _apply_schema(conninfo: str) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if row is None or row[0] is None:
            connection.execute(SchemaManager.get_schema())
        connection.execute(_INDEX)
