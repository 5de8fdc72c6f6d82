"""
Results that Stoker has accepted and lost, for example because its database was restored from a backup.

Stoker's document lists a run only until its result was accepted. A document that lists such a run for a while requests
the result again.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Dict, Mapping

from stoker_agent.active_run import ActiveRun
from stoker_agent.failures import failure
from stoker_agent.programs import inputs
from stoker_agent.report import Reporter
from stoker_agent.runs import Runs, is_id, with_source
from stoker_agent.transports import STOKER

_log = logging.getLogger("stoker-agent")
#: A document may be older than the acceptance of a result, so a run counts only after this time.
SECONDS = 30.0


class LostResults:
    """Reports results again. ``active`` are the runs in progress."""

    def __init__(self, runs: Runs, reporter: Reporter, active: Mapping[str, ActiveRun]) -> None:
        self._runs = runs
        self._reporter = reporter
        self._active = active
        self._lock = threading.Lock()
        #: The entries of the newest document of Stoker, and when the first document in a row listed them.
        self._entries: Mapping[str, Mapping[str, Any]] = {}
        self._listed_since: Dict[str, float] = {}

    def observe(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the runs of a new document of Stoker, by id."""
        with self._lock:
            now = time.monotonic()
            self._listed_since = {id: self._listed_since.get(id, now) for id in entries}
            self._entries = entries
        self.report()

    def report(self) -> None:
        """Report the results again that Stoker has lost. Called from time to time."""
        with self._lock:
            for id, entry in self._entries.items():
                transport = inputs(entry).get("deploy_signal_transport")
                if is_id(id) and id not in self._active and transport != "NO_SIGNAL":
                    self._report(id, entry)

    def _report(self, id: str, entry: Mapping[str, Any]) -> None:
        """Report the result of a run again if it was accepted long ago, or a failure if the agent does not have it."""
        folder = self._runs.folder(id)
        acknowledgment = folder / "acknowledged"
        age = time.monotonic() - self._listed_since[id]
        try:
            if acknowledgment.exists():
                age = max(age, time.time() - acknowledgment.stat().st_mtime)
            elif folder.joinpath("entry.json").exists() or not self._runs.has_begun(id) or self._reporter.holds(id):
                return  # not accepted yet
            if age < SECONDS:
                return
            self._listed_since[id] = time.monotonic()
            if folder.joinpath("result.json").exists():
                _log.warning("result.requested: Stoker has lost the result of %s, which is reported again", id)
                acknowledgment.unlink()
            else:
                _log.error("result.lost: Stoker has lost the result of %s, and this agent does not have it", id)
                self._reporter.keep(with_source(entry, STOKER), failure("The result was lost", 1))
                acknowledgment.unlink(missing_ok=True)
        except OSError as error:
            _log.error("result.not_repeated: cannot report %s again: %s", id, error)
            return
        self._reporter.announce()
