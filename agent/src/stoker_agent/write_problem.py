"""A problem that prevents all runs: the agent cannot write its files. Stoker shows it until the agent can."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Callable, Optional, Sequence, Set

from stoker_agent.channel import Channel
from stoker_agent.config import Config
from stoker_agent.files import write
from stoker_agent.web import Unreachable

_log = logging.getLogger("stoker-agent")
#: Seconds until the agent tries again to begin a run.
PAUSE_SECONDS = 5.0
_PROBE = bytes(2048)


class WriteProblem:
    """
    Whether the agent can write the files of runs, in the directory ``folder``.

    ``config`` is the enrollment; without it, only the agent's log shows the problem. ``on_change`` is called when a
    problem begins and ends.
    """

    def __init__(self, folder: Path, config: Optional[Config], on_change: Callable[[], None]) -> None:
        self._folder = folder
        self._config = config
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

    def retry(self) -> None:
        """Find out whether a problem has ended."""
        if self.reason:
            self.check()

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
        self._reported.clear()
        self._on_change()

    def clear(self) -> None:
        """Record that runs can begin."""
        if not self.reason:
            return
        self.reason = ""
        self._reported.clear()
        _log.info("run.possible: runs can start again")
        self._on_change()

    def report(self, ids: Sequence[str]) -> None:
        """Report the reason as the progress of runs that wait, in a thread. Best effort."""
        unreported = [id for id in ids if id not in self._reported]
        if self._config is None or not unreported:
            return
        self._reported.update(unreported)
        words = (Channel(self._config), unreported, self.reason)
        threading.Thread(target=_report, args=words, name="problem", daemon=True).start()


def _report(channel: Channel, ids: Sequence[str], reason: str) -> None:
    body = json.dumps({"state": "WAITING", "message": reason}).encode()
    try:
        for id in ids:
            channel.call("POST", f"/agent/v1/runs/{id}/progress", body, {"Content-Type": "application/json"})
    except Unreachable as error:
        _log.warning("problem.not_reported: cannot report why runs wait: %s", error)
    finally:
        channel.close()
