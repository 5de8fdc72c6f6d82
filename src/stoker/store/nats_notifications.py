"""
Notifications by NATS core, beside PostgreSQL.

NATS carries the changes, at most once; the heartbeats stay with PostgreSQL. Each heartbeat says whether its process is
connected to NATS. A change is also sent by PostgreSQL while any process is not connected, and a process that loses NATS
counts everything as outdated, twice: at once, and when it has announced the loss. So the loss of NATS costs a delay of
a few seconds and no change, also if only some processes lose it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import structlog

from stoker.backoff import backoff
from stoker.metrics import Metrics
from stoker.store.notifications import PAUSE, decode, encode, merge
from stoker.store.notifier import ALL, Notifier
from stoker.store.notifier_engines import PostgresqlEngine

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

_log = structlog.get_logger("stoker.store")

#: Seconds that NATS may take to answer, and seconds between pings. Two unanswered pings mean that NATS is lost.
_PATIENCE, _PING, _PINGS = 2.0, 1, 2
#: Seconds from the announcement of a loss until the others certainly know of it. With the time to notice a loss, five
#: seconds at most.
_SETTLE = 2.0
#: Seconds between two looks at the connection.
_TICK = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
#: Seconds that the last batch may take at the end.
_CLOSE = 5.0


class NatsEngine:
    """Sends and receives changes by NATS while NATS is there, otherwise by PostgreSQL."""

    def __init__(
        self, url: str, subject: Callable[[], str], notifier: Notifier, metrics: Metrics, postgresql: PostgresqlEngine
    ) -> None:
        """``subject`` returns the NATS subject of the site, from the database."""
        self._url = url
        self._subject = subject
        self._notifier = notifier
        self._metrics = metrics
        self.postgresql = postgresql
        self._id = postgresql.sender.id
        self._lock = threading.Lock()
        self._pending: dict[str, int] = {}
        self._is_connected = False
        self._wake: Callable[[], object] = _ignore
        #: Why the connection has to be replaced.
        self._failure: Exception | None = None
        self._problem: str | None = "is not connected yet"
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def send(self, changes: Mapping[str, int]) -> None:
        """Queue changes for NATS, and for PostgreSQL unless every process receives them by NATS."""
        if not changes:
            return
        with self._lock:
            is_connected = self._is_connected
            if is_connected:
                is_first = not self._pending
                merge(self._pending, changes)
                if is_first:
                    self._wake()
        if not is_connected or self.postgresql.listener.has_others_without_nats:
            self.postgresql.send(changes)
        else:
            self._metrics.notifications_sent.inc(len(changes))

    def start(self) -> None:
        """Begin to receive by PostgreSQL, then by NATS as soon as it answers."""
        self.postgresql.start()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stoker-nats", daemon=True)
            self._thread.start()

    def problems(self) -> dict[str, str | None]:
        """Return the problems of PostgreSQL's parts and of NATS."""
        own = {} if self._thread is None else {"nats": self._problem}
        return {**self.postgresql.problems(), **own}

    def check(self) -> list[str]:
        """Return PostgreSQL's problems: without NATS, PostgreSQL carries the changes."""
        return self.postgresql.check()

    def close(self) -> None:
        """Send what waits, and stop."""
        with self._lock:
            self._stopping.set()
            self._wake()
        if self._thread is not None:
            self._thread.join(_CLOSE)
        self._fall_back()
        self.postgresql.close()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            was_connected = False
            try:
                asyncio.run(self._work(self._subject()))
            except Exception as error:
                was_connected = self._is_connected
                failures = 0 if was_connected else failures
                self._problem = f"has failed: {type(error).__name__}: {error}"
            self._fall_back()
            if self._stopping.is_set():
                return
            pause = backoff(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            failures += 1
            _log.warning("notifications.failed", part="nats", error=self._problem, retry_seconds=pause)
            if was_connected:
                self._notify_all()
                self._await_others()
                self._notify_all()
            self._stopping.wait(pause)

    def _await_others(self) -> None:
        """Wait until the others know that this process has lost NATS; without PostgreSQL, they cannot know."""
        while not self._stopping.is_set() and not self.postgresql.sender.await_announced(_TICK):
            pass
        self._stopping.wait(_SETTLE)

    def _fall_back(self) -> None:
        """Give PostgreSQL what NATS has not confirmed, and all later changes."""
        with self._lock:
            self._is_connected, self._wake, self._failure = False, _ignore, None
            batch, self._pending = self._pending, {}
        self.postgresql.sender.announce(has_nats=False)
        if batch:
            self.postgresql.send(batch)

    async def _work(self, subject: str) -> None:
        """Send and receive until ``close`` is called. Raises if NATS is lost."""
        import nats  # imported late, because few sites use it

        loop, wake = asyncio.get_running_loop(), asyncio.Event()
        client = await nats.connect(
            self._url,
            name="stoker",
            allow_reconnect=False,
            no_echo=True,
            connect_timeout=int(_PATIENCE),
            ping_interval=_PING,
            max_outstanding_pings=_PINGS,
            error_cb=self._on_error,
        )
        try:
            await client.subscribe(subject, cb=self._on_message)
            await client.flush(int(_PATIENCE))
            with self._lock:
                self._is_connected, self._problem, self._failure = True, None, None
                self._wake = lambda: loop.call_soon_threadsafe(wake.set)
            self.postgresql.sender.announce(has_nats=True)
            while not (self._stopping.is_set() and not self._pending):
                if await self._send_pending(client, subject):
                    await asyncio.sleep(PAUSE)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), _TICK)
                wake.clear()
        finally:
            with self._lock:
                self._wake = _ignore
            await client.close()

    async def _send_pending(self, client: Client, subject: str) -> bool:
        """
        Send one batch, and wait until NATS has it. Return whether there was one.

        Raises if the connection has to be replaced.
        """
        if self._failure is not None:
            raise self._failure
        if not client.is_connected:
            raise ConnectionError("the connection is closed")
        with self._lock:
            batch, self._pending = self._pending, {}
        if not batch:
            return False
        try:
            for payload in encode(self._id, batch, has_nats=True):
                await client.publish(subject, payload.encode())
            await client.flush(int(_PATIENCE))
        except BaseException:
            with self._lock:
                merge(self._pending, batch)
            raise
        return True

    async def _on_error(self, error: Exception) -> None:
        self._failure = error

    async def _on_message(self, message: Msg) -> None:
        try:
            received = decode(message.data.decode(errors="replace"))
            if received.sender != self._id:
                self._metrics.notifications_received.inc(len(received.changes))
                for topic, number in received.changes:
                    self._notifier.notify(topic, number)
        except Exception as error:  # a subscriber has failed: with the next connection, everything counts as outdated
            self._failure = error

    def _notify_all(self) -> None:
        self._metrics.cache_clears.inc()
        try:
            self._notifier.notify(ALL, 0)
        except Exception:
            _log.exception("notifications.subscriber_failed")


def _ignore() -> None:
    pass
