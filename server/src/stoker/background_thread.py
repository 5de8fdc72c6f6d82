"""Threads that work until the end of the process or until they are stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

_log = structlog.get_logger("stoker")

#: Seconds until the work begins again after an exception.
_PAUSE = 1.0


class BackgroundThread(threading.Thread):
    """
    A thread that survives exceptions: it logs the exception, waits for a second, and calls ``work`` again.

    The thread ends when ``work`` returns. It is a daemon thread, because work that hangs must not prevent the
    interpreter from exiting.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        """``name`` is also the name of the thread in the log. ``start`` begins the work."""
        super().__init__(name=name, daemon=True)
        self._work = work

    def run(self) -> None:
        """Work; only ``start`` calls this."""
        while True:
            try:
                self._work()
                break
            except Exception:
                _log.exception("thread.failed", thread=self.name, retry_seconds=_PAUSE)
            time.sleep(_PAUSE)
