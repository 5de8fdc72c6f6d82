"""
Failures of services: the pause before another attempt, the circuit breaker of clients, and the errors of external
services.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

#: More doublings than this exceed every limit.
_MOST_DOUBLINGS = 16


def backoff(failures: int, *, first: float = 1.0, longest: float = 300.0) -> float:
    """
    Return the pause in seconds: ``first`` for 0 earlier failures in succession, doubled for each one, up to
    ``longest``.
    """
    return float(min(first * 2 ** min(failures, _MOST_DOUBLINGS), longest))


_log = structlog.get_logger("stoker.services")


class ServiceUnavailable(Exception):
    """An external service does not answer, or answers with a temporary error."""


class ServiceRejected(Exception):
    """An external service understood a request and rejected it. ``status``: the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class CircuitBreaker:
    """
    Protects threads from a service that does not answer.

    While a service is unavailable, one call at a time tries it, at most every ``pause`` seconds, and all others fail at
    once::

        with breaker.guard():
            response = send()  # raises ServiceUnavailable

    ``service`` names the service in errors and in the log, for example by its URL. ``starts_closed`` False: the first
    call tries the service before all others.
    """

    def __init__(self, service: str, pause: float = 0.0, *, starts_closed: bool = True) -> None:
        self._service = service
        self._pause = pause
        self._trial = threading.Lock()
        #: Monotonic time of the next trial; None: the last call was answered.
        self._next_trial: float | None = None if starts_closed else 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Call the service inside. Raises ServiceUnavailable if the service does not answer, or did not lately."""
        next_trial = self._next_trial
        if next_trial is None:
            with self._record():
                yield
            return
        if time.monotonic() < next_trial or not self._trial.acquire(blocking=False):
            raise ServiceUnavailable(f"{self._service} gave no answer lately")
        try:
            with self._record():
                yield
        finally:
            self._trial.release()

    @contextmanager
    def _record(self) -> Iterator[None]:
        try:
            yield
        except ServiceUnavailable as error:
            if not self._next_trial:
                _log.warning("service.unavailable", service=self._service, error=str(error))
            self._next_trial = time.monotonic() + self._pause
            raise
        except Exception:
            self._close()  # the service has answered
            raise
        self._close()

    def _close(self) -> None:
        if self._next_trial:
            _log.info("service.recovered", service=self._service)
        self._next_trial = None
