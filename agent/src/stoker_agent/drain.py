"""The pause of the agent before its restart: no run begins, and active runs end."""

from __future__ import annotations

import threading
import time
from typing import Callable, Mapping

from stoker_agent.active_run import ActiveRun

#: The longest time for which a drain keeps runs from beginning.
LONGEST_SECONDS = 3600.0
_LOOK_SECONDS = 1.0


class Stopped(Exception):
    """The agent ends, so it does not restart."""


class Drain:
    """
    ``changed`` is the agent's condition, which protects ``active``, the runs in progress.

    ``is_stored`` tells whether all results are on disk: a new program does not know those in memory.
    """

    def __init__(
        self, changed: threading.Condition, active: Mapping[str, ActiveRun], is_stored: Callable[[], bool]
    ) -> None:
        self._changed = changed
        self._active = active
        self._is_stored = is_stored
        self._is_stopped = False
        #: Whether no further run may begin. Read with ``changed`` held.
        self.is_on = False
        #: Held while the program is replaced.
        self.restarting = threading.Lock()

    def begin(self, report: Callable[[str], object]) -> None:
        """
        Let no new run begin, and return when no run is active and all results are stored.

        ``report`` receives the reason of the wait whenever it changes, such as ``waits for 2 runs``. Raises Stopped if
        the agent ends, and TimeoutError after an hour.
        """
        until = time.monotonic() + LONGEST_SECONDS
        reported = ""
        while True:
            with self._changed:
                self.is_on = True
                # No notification follows the storage of a result, so the wait is short.
                if self._describe() == reported:
                    self._changed.wait(_LOOK_SECONDS)
                reason = self._describe()
            self.check()
            if not reason:
                return
            if time.monotonic() > until:
                raise TimeoutError(f"the agent {reason}, and did not restart within {LONGEST_SECONDS:g} s")
            if reason != reported:
                report(reason)
                reported = reason

    def end(self) -> None:
        """Let runs begin again."""
        with self._changed:
            self.is_on = False
            self._changed.notify_all()

    def stop(self) -> None:
        """End the wait, because the agent ends."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise Stopped if the agent ends."""
        if self._is_stopped:
            raise Stopped

    def _describe(self) -> str:
        count = len(self._active)
        if count:
            return f"waits for {count} run{'s' if count > 1 else ''}"
        return "" if self._is_stored() else "waits for room on the disk for results"
