"""
The notifier's engines: how the processes of a site learn of each other's changes.

An engine carries what one process has committed to the subscribers of the others. SQLite has one process and needs
none; PostgreSQL carries notifications itself; NATS (``nats_notifications``) relieves PostgreSQL of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from stoker.metrics import Metrics
from stoker.store.connection_watchdog import ConnectionWatchdog
from stoker.store.notifications import NotificationListener, NotificationSender
from stoker.store.notifier import Notifier


class NotifierEngine(Protocol):
    """Carries notifications between processes. A lost one may delay a process by five seconds at most."""

    def send(self, changes: Mapping[str, int]) -> None:
        """Send topics and their numbers to all other processes, after the commit. Does not block."""

    def start(self) -> None:
        """Begin to receive what other processes send. Waits, a few seconds at most, until they know of this one."""

    def problems(self) -> dict[str, str | None]:
        """Return the current problem of each part; None: the part works. Empty before ``start``."""

    def check(self) -> list[str]:
        """Return the problems for which other processes' changes are not received, or own ones not sent."""

    def close(self) -> None:
        """Send what waits, and stop."""


class InProcess:
    """The engine of SQLite, which a single process uses."""

    def send(self, changes: Mapping[str, int]) -> None:
        """Do nothing: the notifier has called the subscribers of the only process."""

    def start(self) -> None:
        """Do nothing."""

    def problems(self) -> dict[str, str | None]:
        """Return no parts."""
        return {}

    def check(self) -> list[str]:
        """Return no problems."""
        return []

    def close(self) -> None:
        """Do nothing."""


class PostgresqlEngine:
    """Sends by NOTIFY, one at a time for all commits since the previous one, and receives by LISTEN."""

    def __init__(self, conninfo: str, notifier: Notifier, metrics: Metrics, watchdog: ConnectionWatchdog) -> None:
        self.sender = NotificationSender(conninfo, metrics, watchdog)
        self.listener = NotificationListener(conninfo, notifier, self.sender.id, metrics, watchdog)
        self._is_started = False

    def send(self, changes: Mapping[str, int]) -> None:
        """Queue changes; the sender's thread starts with the first one."""
        self.sender.send(changes)

    def start(self) -> None:
        """Start both threads."""
        if not self._is_started:
            self._is_started = True
            self.sender.start_and_wait()
            self.listener.start()

    def problems(self) -> dict[str, str | None]:
        """Return the problems of the listener and the sender."""
        return {"listener": self.listener.problem, "sender": self.sender.problem} if self._is_started else {}

    def check(self) -> list[str]:
        """Return a clause for each problem."""
        return [f"the {name} {problem}" for name, problem in self.problems().items() if problem]

    def close(self) -> None:
        """Stop both threads."""
        self.listener.close()
        self.sender.close()
