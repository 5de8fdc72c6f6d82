"""The result of GET /healthz: a background thread runs named checks, and requests read their latest results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import structlog

from stoker.background_thread import BackgroundThread
from stoker.model.errors import StokerError

_log = structlog.get_logger("stoker.health")

#: Seconds between the end of one round of checks and the start of the next.
_INTERVAL = 1.0
#: Seconds after which a check that has not returned counts as failed.
_PATIENCE = 10.0

#: A health check. Returns if all is well, otherwise raises StokerError with the reason. May block.
Check = Callable[[], None]


class HealthReport:
    """
    Runs every check about once a second on its own thread.

    A busy service or an unresponsive database therefore does not delay GET /healthz. A check that hangs is reported as
    a problem.
    """

    def __init__(self, checks: Mapping[str, Check], advisory: Mapping[str, Check] | None = None) -> None:
        """A failure of ``checks`` makes the service unhealthy, one of ``advisory`` checks only degraded."""
        self._advisory = frozenset(advisory or {})
        self._checks = {**checks, **(advisory or {})}
        self._problems: dict[str, str] = {}
        #: Name of the running check and its start, by time.monotonic().
        self._running: tuple[str, float] | None = None
        self._stop = threading.Event()
        self._thread: BackgroundThread | None = None

    def start(self) -> None:
        self._thread = BackgroundThread("stoker-health", self._run)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Does not wait for a check that hangs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def problems(self) -> dict[str, str]:
        """Return the reasons of failed checks by name; empty unless the service is unhealthy. Never blocks."""
        problems = {name: reason for name, reason in self._problems.items() if name not in self._advisory}
        running = self._running
        if running is not None and (seconds := time.monotonic() - running[1]) > _PATIENCE:
            problems[running[0]] = f"no answer for {seconds:.0f} seconds"
        return problems

    def warnings(self) -> dict[str, str]:
        """Return the reasons of failed advisory checks by name. Never blocks."""
        return {name: reason for name, reason in self._problems.items() if name in self._advisory}

    def refresh(self) -> None:
        """Run every check once, on the calling thread."""
        for name, check in self._checks.items():
            self._running = name, time.monotonic()
            reason = _reason(check)
            self._running = None
            if reason != self._problems.get(name):
                _log.warning("health.changed", check=name, reason=reason or "healthy")
            # A new dictionary for each change, so that readers on the event loop need no lock.
            others = {other: problem for other, problem in self._problems.items() if other != name}
            self._problems = {**others, name: reason} if reason else others

    def _run(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(_INTERVAL)


def _reason(check: Check) -> str | None:
    try:
        check()
    except StokerError as error:
        return error.message
    except Exception as error:  # a defect of the check must not end the thread
        return f"{type(error).__name__}: {error}"
    return None
