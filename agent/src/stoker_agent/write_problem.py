"""A problem that prevents all runs: the agent cannot write its files. Stoker shows it until the agent can."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Callable, Optional, Sequence, Set

from stoker_agent.files import write
from stoker_agent.outbox import Outbox

_log = logging.getLogger("stoker-agent")
#: Seconds until the agent tries again to begin a run.
PAUSE_SECONDS = 5.0
_PROBE = bytes(2048)


class WriteProblem:
    """
    Whether the agent can write the files of runs, in the directory ``folder``.

    Stoker learns of it through ``outbox``. ``on_change`` is called when a problem begins and ends.
    """

    def __init__(self, folder: Path, outbox: Outbox, on_change: Callable[[], None]) -> None:
        self._folder = folder
        self._outbox = outbox
        self._on_change = on_change
        #: For people; empty if there is no problem.
        self.reason = ""
        self._retry_at = 0.0
        #: The runs whose status at Stoker has the reason.
        self._reported: Set[str] = set()

    def pause(self) -> Optional[float]:
        """Return the seconds until a run may be tried again, or None if it may be tried now."""
        left = self._retry_at - time.monotonic()
        return left if self.reason and left > 0 else None

    def check(self) -> None:
        """Find out whether files can be written."""
        probe = self._folder.with_name(".probe")
        try:
            write(probe, _PROBE, sync=False)
            probe.unlink()
        except OSError as error:
            self._set(error)
        else:
            self.clear()

    def record(self, error: OSError) -> None:
        """Record that a run cannot begin, and try no other for a while."""
        self._set(error)
        self._retry_at = time.monotonic() + PAUSE_SECONDS

    def _set(self, error: OSError) -> None:
        before = self.reason
        self.reason = f"the agent cannot write {self._folder}: {os.strerror(error.errno) if error.errno else error}"
        if self.reason == before:
            return
        _log.error("run.not_started: no run can start: %s", self.reason)
        self._forget_reports()
        self._on_change()

    def clear(self) -> None:
        """Record that runs can begin."""
        if not self.reason:
            return
        self.reason = ""
        self._forget_reports()
        _log.info("run.possible: runs can start again")
        self._on_change()

    def report(self, ids: Sequence[str]) -> None:
        """Report the reason as the progress of runs that wait."""
        for id in ids:
            if id not in self._reported:
                self._reported.add(id)
                body = {"state": "WAITING", "message": self.reason}
                self._outbox.post(_key(id), "POST", f"/agent/v1/runs/{id}/progress", body)

    def _forget_reports(self) -> None:
        """Send no report that is not true any more."""
        for id in self._reported:
            self._outbox.drop(_key(id))
        self._reported.clear()


def _key(id: str) -> str:
    return f"reason why {id} waits"
