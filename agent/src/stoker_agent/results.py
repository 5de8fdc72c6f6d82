"""Results of runs: stored, and reported to their receivers until these accept them."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, Mapping, Optional

from stoker_agent.disk import Disk
from stoker_agent.outbox import Outbox
from stoker_agent.programs import inputs
from stoker_agent.reports import failure, fit
from stoker_agent.runs import Runs
from stoker_agent.transports import Sender, Senders

_log = logging.getLogger("stoker-agent")
#: The place of a result that has no receiver.
_NOWHERE = "nowhere"
#: A document may be older than the acceptance of a result, so a listed run counts as lost only after this time.
LOST_SECONDS = 30.0


class Results:
    """
    Stores results on ``disk``, and reports them through ``outbox``, from memory if they cannot be stored.

    ``active`` are the runs in progress. ``on_taken`` is called after the acceptance of each result.

    A result that Stoker has accepted and lost, for example because its database was restored from a backup, is reported
    again. Stoker's document lists a run only until its result was accepted, so a document that lists the run after a
    while requests that. Stoker does not send the document again for each accepted result.
    """

    def __init__(
        self,
        runs: Runs,
        disk: Disk,
        outbox: Outbox,
        senders: Senders,
        active: Mapping[str, object],
        on_taken: Callable[[], None] = lambda: None,
    ) -> None:
        self._runs = runs
        self._disk = disk
        self._outbox = outbox
        self._senders = senders
        self._active = active
        self._on_taken = on_taken
        #: Results that could not be stored at once.
        self._unstored: Dict[str, Mapping[str, Any]] = {}
        self._lock = threading.Lock()
        #: The entries of the newest document of Stoker whose results were not accepted since, and when the first
        #: document in a row listed them.
        self._listed: Dict[str, Mapping[str, Any]] = {}
        self._listed_since: Dict[str, float] = {}
        outbox.put("results of an earlier process", _NOWHERE, self._announce_stored)

    def keep(self, entry: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Store the result of an entry's run until it is reported. Without disk space, keep it in memory."""
        if not self._disk.write(entry["id"], lambda: self._runs.end(entry, values)):
            _log.error("result.not_stored: cannot store the result of %s: %s", entry["id"], self._disk.reason)
            self._unstored[entry["id"]] = values

    def announce(self, entry: Mapping[str, Any]) -> None:
        """Report the result that was kept for the run of an entry."""
        id, sender = entry["id"], self._senders.of(entry)
        self._outbox.put(f"result of {id}", sender.place if sender else _NOWHERE, lambda: self._report(id, sender))

    def observe(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the runs of a new document of Stoker, by id."""
        with self._lock:
            now = time.monotonic()
            self._listed_since = {id: self._listed_since.get(id, now) for id in entries}
            self._listed = dict(entries)
        self.repeat_lost()

    def repeat_lost(self) -> None:
        """Report the results again that Stoker has lost. Called from time to time."""
        with self._lock:
            for id, entry in self._listed.items():
                transport = inputs(entry).get("deploy_signal_transport")
                if id not in self._active and transport != "NO_SIGNAL":
                    self._repeat(id, entry)

    def _announce_stored(self) -> None:
        for id in self._runs.list_unreported():
            # without an entry, the result goes to Stoker's channel, if the agent has one
            self.announce(self._runs.entry(id))

    def _report(self, id: str, sender: Optional[Sender]) -> None:
        """Report one result, and record its acknowledgment. Raises Unreachable."""
        if sender is not None:
            try:
                values = self._unstored.get(id) or self._runs.result(id)
            except FileNotFoundError:
                _log.error("result.lost: the files of the run %s were deleted before its report", id)
                return
            _send(sender, id, values)
        self._unstored.pop(id, None)
        self._disk.write(id, lambda: self._runs.acknowledge(id))
        if sender is not None:
            with self._lock:
                self._listed.pop(id, None)
            self._on_taken()

    def _repeat(self, id: str, entry: Mapping[str, Any]) -> None:
        """Report the result of a run again if it was accepted long ago, or a failure if the agent does not have it."""
        folder = self._runs.folder(id)
        acknowledgment = folder / "acknowledged"
        age = time.monotonic() - self._listed_since[id]
        try:
            if acknowledgment.exists():
                age = max(age, time.time() - acknowledgment.stat().st_mtime)
            elif not self._runs.has_begun(id) or folder.joinpath("entry.json").exists() or self._disk.holds(id):
                return  # not accepted yet; a run that begins meanwhile has its entry before it has begun
            if age < LOST_SECONDS:
                return
            self._listed_since[id] = time.monotonic()
            if folder.joinpath("result.json").exists():
                _log.warning("result.requested: Stoker has lost the result of %s, which is reported again", id)
                acknowledgment.unlink()
            else:
                _log.error("result.lost: Stoker has lost the result of %s, and this agent does not have it", id)
                self.keep(entry, failure("The result was lost", 1))
                acknowledgment.unlink(missing_ok=True)
        except OSError as error:
            _log.error("result.not_repeated: cannot report %s again: %s", id, error)
            return
        self.announce(entry)


def _send(sender: Sender, id: str, values: Mapping[str, Any]) -> None:
    """Send a result. If it is refused, send a failure instead where the target expects one. Raises Unreachable."""
    refused = sender.send(id, fit(values, sender.limit))
    if refused is None:
        return
    _log.error("result.refused: the result of %s is refused, and not sent again: %s", id, refused)
    if sender.wants_failure_report:
        # The target rejects this result permanently, but must learn that the run has ended.
        reason = f"The server refused the result: {refused}"
        sender.send(id, {"deploy_status_reason": reason, "deploy_status_code": 1})
