"""
Notifications between processes that share a PostgreSQL: a sender and a listener, each with a thread and a connection.

The sender sends after the commit, because a NOTIFY inside a transaction locks the whole PostgreSQL server until the
transaction is on disk. Changes that are committed while one NOTIFY is in flight are sent with the next.

If a process is killed between a commit and its NOTIFY, caches of other processes are outdated. Therefore every sender
sends a heartbeat, and a listener that misses the heartbeats of a process notifies ``ALL`` once. The heartbeats of the
listener's own process show that its connection still delivers.

If the confirmation of a commit is lost with its connection, PostgreSQL may have stored the transaction, or may store it
later. Its notifications are sent at once, and again with the heartbeats until the transaction has certainly ended.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import closing
from typing import NamedTuple

import structlog

from stoker.background_thread import BackgroundThread
from stoker.failures import backoff
from stoker.metrics import Metrics
from stoker.store.notifier import ALL, Notifier
from stoker.store.pipeline import Pipeline, connect, limit_session

_log = structlog.get_logger("stoker.store")

_LISTEN = b"LISTEN stoker"
_SEND = b"SELECT pg_notify('stoker', payload) FROM unnest($1::text[]) AS payload"
#: Commits of notifications need not wait for the disk: a crash of the server loses notifications anyway.
_NOT_DURABLE = b"SET synchronous_commit = off"
#: PostgreSQL rejects payloads of 8000 bytes or more.
PAYLOAD_BYTES = 7900
#: The maximum number of topics that wait while the sender is not connected; if there are more, one ``ALL`` replaces
#: them.
_LARGEST_BATCH = 50_000
#: Seconds between heartbeats, and seconds without a heartbeat after which a process counts as failed.
HEARTBEAT, GONE = 1.0, 4.0
#: Seconds from the end of one sending to the next one. Without this pause, a busy process sends one notification per
#: commit, which costs it, PostgreSQL and all listeners as much as a part of the commit itself.
PAUSE = 0.01
#: Seconds that a listener waits for a notification before it checks whether it has to stop.
_TICK = 0.5
#: Seconds that the first heartbeat and the listener may take at start-up, and the last batch at the end.
_START, _CLOSE = 5.0, 5.0
#: Seconds after which an unconfirmed commit has ended: PostgreSQL ends longer transactions (``pipeline``).
_PATIENCE = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
#: Seconds that PostgreSQL may take to accept a connection, and to accept notifications.
_CONNECT_SECONDS, _ANSWER_SECONDS = 5, 5.0


def encode(sender: str, changes: Mapping[str, int], *, leaves: bool = False) -> Iterator[str]:
    """
    Yield at least one payload, in ASCII and of at most ``PAYLOAD_BYTES``; without changes, the payload is a heartbeat.

    ``changes`` maps topics to numbers. ``leaves`` states that the process stops regularly and has sent everything.
    """
    head = f'{{"from":"{sender}","leaves":{json.dumps(leaves)},"changes":['
    entries: list[str] = []
    size = len(head) + 2
    for topic, number in changes.items():
        entry = json.dumps([topic, number], separators=(",", ":"))
        if len(head) + 2 + len(entry) > PAYLOAD_BYTES:
            entry = json.dumps([ALL, 0])  # the topic fits into no payload
        if entries and size + len(entry) + 1 > PAYLOAD_BYTES:
            yield f"{head}{','.join(entries)}]}}"
            entries, size = [], len(head) + 2
        entries.append(entry)
        size += len(entry) + 1
    yield f"{head}{','.join(entries)}]}}"


class Received(NamedTuple):
    """A decoded payload. ``sender`` is empty if another program has sent the payload."""

    sender: str
    changes: Sequence[tuple[str, int]]
    leaves: bool = False


def decode(payload: str) -> Received:
    """Decode a payload. One that ``encode`` has not made counts as a change of everything."""
    try:
        content = json.loads(payload)  # noqa: TID251 — sent by another process of this site
        changes = [(str(topic), int(number)) for topic, number in content["changes"]]
        return Received(str(content["from"]), changes, content["leaves"] is True)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _log.warning("notification.unreadable", payload=payload[:100])
        return Received("", [(ALL, 0)])


def merge(pending: MutableMapping[str, int], changes: Mapping[str, int]) -> None:
    """Add changes to those that wait. Too many are replaced by one ``ALL``."""
    for topic, number in changes.items():
        pending[topic] = max(number, pending.get(topic, 0))
    if len(pending) > _LARGEST_BATCH:
        pending.clear()
        pending[ALL] = 0


class _Supervised:
    """A thread with its own connection, which connects again after any failure."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._changed = threading.Condition()
        self._stopping = False
        self._ready = threading.Event()
        self._problem: str | None = "is not connected yet"
        self._thread: BackgroundThread | None = None

    @property
    def problem(self) -> str | None:
        """The current problem as the end of a sentence; None: the thread works."""
        if self._thread is not None and not self._thread.is_alive():
            return "has ended"
        return self._problem

    def start(self) -> None:
        """Start the thread, unless it runs or was closed."""
        with self._changed:
            if self._thread is None and not self._stopping:
                self._thread = BackgroundThread(f"stoker-{self._name}", self._run)
                self._thread.start()

    def wait_until_connected(self) -> None:
        """Wait until the thread has worked for the first time, for a few seconds at most."""
        self._ready.wait(_START)

    def close(self) -> None:
        """Stop the thread and wait for it, for a few seconds at most."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE)

    def _run(self) -> None:
        failures = 0
        while True:
            try:
                name = f"stoker {self._name}"
                with closing(connect(self._url, application_name=name, connect_timeout=_CONNECT_SECONDS)) as driver:
                    pipeline = Pipeline(driver, answer_seconds=_ANSWER_SECONDS)
                    limit_session(pipeline)
                    self._work(pipeline)
                    return
            except Exception as error:
                failures = 0 if self._problem is None else failures
                self._problem = f"has failed: {type(error).__name__}: {error}"
            pause = backoff(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            failures += 1
            with self._changed:
                if self._stopping:
                    return
                _log.warning("notifications.failed", part=self._name, error=self._problem, retry_seconds=pause)
                self._changed.wait_for(lambda: self._stopping, pause)

    def _on_connected(self) -> None:
        self._problem = None
        self._ready.set()

    def _work(self, pipeline: Pipeline) -> None:
        """Work until ``close`` is called. After an exception, the method is called again with a new connection."""
        raise NotImplementedError


class NotificationSender(_Supervised):
    """Notifies other processes of the changes that this one commits. Its thread starts with the first change."""

    def __init__(self, url: str, notifier: Notifier, metrics: Metrics) -> None:
        super().__init__(url, "sender")
        self.id = secrets.token_hex(8)
        self._notifier = notifier
        self._metrics = metrics
        self._pending: dict[str, int] = {}
        #: Changes whose commits may not have ended yet, each with the time when they have.
        self._unconfirmed: list[tuple[float, Mapping[str, int]]] = []
        self._repeat_at = 0.0

    def send(self, changes: Mapping[str, int]) -> None:
        """Queue changes for sending, after their commit. Does not block."""
        if not changes:
            return
        self._metrics.notifications_sent.inc(len(changes))
        with self._changed:
            is_first = not self._pending
            merge(self._pending, changes)
            if is_first:
                self._changed.notify_all()
        if self._thread is None:
            self.start()

    def send_unconfirmed(self, changes: Mapping[str, int]) -> None:
        """Notify all processes, including this one, now and until the commit of the changes has certainly ended."""
        if changes:
            _log.warning("database.commits_unconfirmed", notifications=len(changes))
            with self._changed:
                self._unconfirmed.append((time.monotonic() + _PATIENCE, changes))
            self._send_everywhere(changes)

    def _send_everywhere(self, changes: Mapping[str, int]) -> None:
        self.send(changes)
        self._notifier.notify(changes)

    def _work(self, pipeline: Pipeline) -> None:
        pipeline.run([(_NOT_DURABLE, ())], commits=True)
        # The first payload carries what waits. A heartbeat before it would tell the others that nothing is missing,
        # also if every connection is lost before the changes are sent.
        leaves = self._send_pending(pipeline)
        self._on_connected()
        while not leaves:
            next_at = time.monotonic() + PAUSE
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._stopping, HEARTBEAT)
            self._send_again()
            time.sleep(max(0.0, next_at - time.monotonic()))
            leaves = self._send_pending(pipeline)

    def _send_again(self) -> None:
        """Send the changes of unconfirmed commits, as often as heartbeats."""
        now = time.monotonic()
        if self._unconfirmed and now >= self._repeat_at:
            self._repeat_at = now + HEARTBEAT
            with self._changed:
                unconfirmed = list(self._unconfirmed)
                self._unconfirmed = [entry for entry in unconfirmed if entry[0] > now]
            for _, changes in unconfirmed:
                self._send_everywhere(changes)

    def _send_pending(self, pipeline: Pipeline) -> bool:
        """Send the changes that wait, or a heartbeat. Return whether this was the last payload."""
        with self._changed:
            batch, self._pending = self._pending, {}
            leaves = self._stopping
            for _, changes in self._unconfirmed if leaves else ():
                merge(batch, changes)
        try:
            pipeline.run([(_SEND, (list(encode(self.id, batch, leaves=leaves)),))], commits=True)
        except Exception:
            with self._changed:
                merge(self._pending, batch)
            raise
        return leaves


class NotificationListener(_Supervised):
    """Notifies the subscribers of this process of changes that other processes commit."""

    def __init__(self, url: str, notifier: Notifier, own_id: str, metrics: Metrics) -> None:
        super().__init__(url, "listener")
        self._notifier = notifier
        self._own_id = own_id
        self._metrics = metrics

    def _work(self, pipeline: Pipeline) -> None:
        pipeline.run([(_LISTEN, ())], commits=True)
        self._on_connected()
        # Notifications sent before this connection are lost, so all caches may be outdated.
        self._notify_all()
        begun = time.monotonic()
        #: The time of the last payload from each process. The key "" represents processes that were killed before their
        #: first heartbeat reached this connection: because of these, everything counts as outdated once more.
        last = {self._own_id: begun, "": begun}
        while not self._stopping:
            for notification in pipeline.connection.notifies(timeout=_TICK):
                self._receive(notification.payload, last)
            now = time.monotonic()
            for sender, at in list(last.items()):
                if now - at > GONE:
                    self._on_sender_lost(sender, last)

    def _receive(self, payload: str, last: dict[str, float]) -> None:
        received = decode(payload)
        sender = received.sender
        if sender:
            last[sender] = time.monotonic()
        if sender == self._own_id:
            return  # this process's subscribers were notified at the commit
        self._metrics.notifications_received.inc(len(received.changes))
        self._notifier.notify(dict(received.changes))
        if received.leaves:
            last.pop(sender, None)

    def _on_sender_lost(self, sender: str, last: dict[str, float]) -> None:
        if sender == self._own_id:
            raise TimeoutError(f"nothing was received for {GONE:.0f} seconds")
        del last[sender]
        if sender:
            _log.warning("notification_sender.lost", sender=sender)
        self._notify_all()

    def _notify_all(self) -> None:
        self._metrics.cache_clears.inc()
        self._notifier.notify({ALL: 0})


class PostgresqlNotifications:
    """
    Carries notifications between the processes of a site on PostgreSQL, by a sender and a listener.

    A lost notification delays another process by five seconds at most.
    """

    def __init__(self, url: str, notifier: Notifier, metrics: Metrics) -> None:
        """``url`` leads to PostgreSQL without a connection pooler."""
        self.sender = NotificationSender(url, notifier, metrics)
        self.listener = NotificationListener(url, notifier, self.sender.id, metrics)
        self._is_started = False

    def start(self) -> None:
        """
        Start both threads. Waits, for a few seconds at most, until both have worked for the first time.

        From then on, other processes notice if this one is killed, and GET /healthz finds nothing that is only late.
        """
        if not self._is_started:
            self._is_started = True
            for part in (self.sender, self.listener):
                part.start()
            for part in (self.sender, self.listener):
                part.wait_until_connected()

    def problems(self) -> dict[str, str | None]:
        """Return the current problem of each part; None: the part works. Empty before ``start``."""
        return {"listener": self.listener.problem, "sender": self.sender.problem} if self._is_started else {}

    def close(self) -> None:
        """Send what waits, and stop both threads."""
        self.listener.close()
        self.sender.close()
