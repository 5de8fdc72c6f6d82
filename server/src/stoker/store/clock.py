"""
The time of a site. Whatever Stoker stores or compares with stored times uses it, never the clock of a machine.

On PostgreSQL, all processes use the time of the database server, because their machines' clocks may differ. A process
measures it together with queries that it sends anyway: when a connection opens, and with the health check each second.

On SQLite, the single process begins with the time of its machine. When the machine's clock is set, Stoker's time
approaches it slowly, so that no deadline passes much too early or late.

The time since the machine's start (uptime) continues both between measurements.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from stoker.model.errors import Unavailable

_log = structlog.get_logger("stoker.store")

#: A query for the time of the database server, in seconds since 1970.
DATABASE_TIME = "CAST(extract(epoch FROM clock_timestamp()) AS float8)"
#: How much faster than this machine a database server's clock may run: twice the correction that NTP makes at most.
_DRIFT = 0.001
#: On SQLite, the seconds per second by which Stoker's time approaches the machine's clock at most, and the seconds in
#: which it would reach it. The health check is much more frequent, so Stoker's time does not go too far.
_FASTEST, _DURATION = 0.1, 10.0
#: Seconds by which the machine's clock may differ without a line in the log.
_TOLERANCE = 5.0
#: This clock also runs while the machine is suspended. Only Linux has it.
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_read_uptime = partial(time.clock_gettime, _UPTIME)


class Clock:
    """
    The clock of one process. It starts with the machine's time, and never goes back on SQLite.

    On PostgreSQL, it is never behind the database server, and ahead by about the duration of a query. So a job that is
    due by the database is also due by every process.
    """

    def __init__(self, machine: Callable[[], float] = time.time, uptime: Callable[[], float] = _read_uptime) -> None:
        """``machine`` returns the machine's time in seconds since 1970, ``uptime`` the seconds since its start."""
        self._machine = machine
        #: Returns the seconds since the machine's start, which do not change when its clock is set.
        self.uptime = uptime
        now = uptime()
        self._lock = threading.Lock()
        #: The uptime of the last correction, the difference between time and uptime then, and its growth per second.
        self._state = (now, machine() - now, 0.0)
        self._is_measured = False
        self._differs = False

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.fromtimestamp(self._seconds(), UTC)

    def difference(self) -> float:
        """Return the seconds by which the machine's clock is ahead; negative if it is behind."""
        return self._machine() - self._seconds()

    def check(self) -> None:
        """Raise Unavailable while the times of a site on SQLite are wrong, because the machine's clock was set."""
        if self._is_measured or abs(seconds := self.difference()) <= _TOLERANCE:
            return
        raise Unavailable(
            f"the machine's clock was set, and Stoker's time is {timedelta(seconds=round(abs(seconds)))}"
            f" {'behind' if seconds > 0 else 'ahead of'} it: schedules, maintenance windows and all times shown follow"
            " Stoker's time; restart stoker serve to correct it"
        )

    def measure(self, asked_at: float, answer: float) -> None:
        """
        Correct the clock by a measurement on PostgreSQL.

        ``asked_at`` is the ``uptime`` before the query for ``DATABASE_TIME``, and ``answer`` its result. The database
        may have read its clock at any time in between, so a slow answer says little and usually changes nothing.
        """
        received_at = self.uptime()
        with self._lock:
            at, offset, growth = self._state
            offset += (received_at - at) * growth
            if not self._is_measured or not answer - received_at <= offset <= answer - asked_at:
                offset = answer - asked_at
            self._state = (received_at, offset, _DRIFT)
            self._is_measured = True
        self._log_difference()

    def approach_machine(self) -> None:
        """Let the clock go faster or slower on SQLite, if it differs from the machine's clock. Call it each second."""
        with self._lock:
            now, seconds = self.uptime(), self._seconds()
            growth = (self._machine() - seconds) / _DURATION
            self._state = (now, seconds - now, max(-_FASTEST, min(growth, _FASTEST)))
        self._log_difference()

    def _seconds(self) -> float:
        now = self.uptime()
        at, offset, growth = self._state
        return now + offset + (now - at) * growth

    def _log_difference(self) -> None:
        seconds = self.difference()
        differs = abs(seconds) > _TOLERANCE
        if differs != self._differs:
            self._differs = differs
            if differs:
                _log.warning("clock.differs", seconds=round(seconds, 3))
            else:
                _log.info("clock.agrees")
