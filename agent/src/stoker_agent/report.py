"""Reports results to their receivers: from disk, oldest first, with retries until a receiver answers."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Set

from stoker_agent.backoff import LONGEST, Backoff
from stoker_agent.limits import fit
from stoker_agent.runs import Runs, source_of
from stoker_agent.transports import Sender, Senders
from stoker_agent.web import Busy, Refused, Unreachable

_log = logging.getLogger("stoker-agent")
_REFUSED_SECONDS = 60.0
_DISK = "disk"
#: The longest pause until the agent tries again to write to a full disk.
_DISK_SECONDS = 5.0


class _Later:
    """The time of a retry, with growing pauses."""

    def __init__(self, longest: float) -> None:
        self._backoff = Backoff(longest)
        self.due = 0.0

    def put_off(self, seconds: float, retry_after: float) -> None:
        self.due = time.monotonic() + max(seconds, self._backoff.next(retry_after))


class _Result(NamedTuple):
    """A result that is not on disk. ``entry`` is the entry of its run, as it is stored."""

    entry: Mapping[str, Any]
    values: Mapping[str, Any]


class Reporter:
    """
    Stores and reports results in a thread.

    If the disk is full, the result is reported from memory, and stored as soon as there is room. ``on_taken`` is called
    after each accepted result, ``on_full`` if a result cannot be stored. ``longest`` is the longest pause in seconds
    between two retries.
    """

    def __init__(
        self,
        senders: Senders,
        runs: Runs,
        on_taken: Callable[[], None] = lambda: None,
        longest: float = LONGEST,
        on_full: Callable[[OSError], None] = lambda _: None,
    ) -> None:
        self._senders = senders
        self._runs = runs
        self._on_taken = on_taken
        self._on_full = on_full
        self._longest = longest
        #: Results that are not on disk, and ids of runs whose acknowledgment is not.
        self._unstored: Dict[str, _Result] = {}
        self._unnoted: Set[str] = set()
        self._changed = threading.Condition()
        self._storing = threading.Lock()
        # results of an earlier agent process count as the first addition
        self._added, self._tried, self._done = 1, 0, 0
        #: Retry times: by target if it does not answer, by run if only one result fails, and for the disk.
        self._later: Dict[str, _Later] = {}
        self._started = 0.0

    def start(self) -> None:
        """Start the reporting thread."""
        threading.Thread(target=self._run, name="report", daemon=True).start()

    def keep(self, entry: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """
        Store a result until it is reported. Without disk space, keep it in memory.

        ``entry`` is the entry of the run with its source, as it is stored.
        """
        result = _Result(entry, values)
        problem = self._store(result)
        if problem is not None:
            _log.error("result.not_stored: cannot store the result of %s: %s", entry["id"], problem)
            self._unstored[entry["id"]] = result

    def store_all(self) -> bool:
        """Try to store what is only in memory. Return whether everything is on disk."""
        for id, result in list(self._unstored.items()):
            if self._store(result) is not None:
                return False
            self._unstored.pop(id, None)  # absent if it was accepted meanwhile
        for id in list(self._unnoted):
            self._note(id)
        return not self._unnoted

    def holds(self, id: Optional[str] = None) -> bool:
        """Whether the result of a run, or of any run, is only in memory."""
        return bool(self._unstored) if id is None else id in self._unstored

    def _store(self, result: _Result) -> Optional[OSError]:
        """Store a result. Return the error if that is impossible."""
        with self._storing:
            try:
                self._runs.end(result.entry, result.values)
            except OSError as error:
                self._on_full(error)
                return error
        return None

    def announce(self) -> None:
        """Report the stored results soon."""
        with self._changed:
            self._added += 1
            self._changed.notify_all()

    def wait(self, seconds: Optional[float] = None) -> None:
        """Wait until all results added so far are reported, but at most ``seconds``."""
        with self._changed:
            self._changed.wait_for(lambda: self._done == self._added, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                # New results are tried at once, even while other targets are in a pause.
                self._changed.wait_for(lambda: self._added not in (self._done, self._tried), _pause(self._later))
                self._tried = self._added
            if self._report_all():
                self._later.clear()
                with self._changed:
                    self._done = self._tried
                    self._changed.notify_all()

    def _report_all(self) -> bool:
        """Report all results. Return False if some must be retried."""
        self._started = time.monotonic()
        if not self._waits(_DISK):
            self.store_all()
        try:
            stored = self._runs.list_unreported()
            ids = [id for id in dict.fromkeys([*stored, *self._unstored]) if id not in self._unnoted]
        except OSError as error:
            _log.error("results.unreadable: cannot read stored results: %s", error)
            self._put_off(_DISK)
            return False
        senders = [(id, self._sender(id)) for id in ids]
        # A target that did not answer recently comes last, because it may time out again.
        senders.sort(key=lambda pair: _place(pair[1]) in self._later)
        whole = True
        for id, sender in senders:
            if not self._report(id, sender):
                whole = False
        if self._unstored or self._unnoted:
            whole = False
            if not self._waits(_DISK):
                self._put_off(_DISK)
        # No result waits for a retry time that has passed.
        self._later = {name: pair for name, pair in self._later.items() if pair.due > self._started}
        return whole

    def _report(self, id: str, sender: Optional[Sender]) -> bool:
        """Report one result. Return False if it must be retried."""
        if self._waits(_run(id)) or self._waits(_place(sender)):
            return False
        try:
            if sender is not None:
                result = self._unstored.get(id)
                _send(sender, id, result.values if result else self._runs.result(id))
        except Busy as error:
            # Without Retry-After, the target may fail for this result only, so others are still sent.
            _log.warning("result.not_sent: cannot report %s: %s", id, error)
            self._put_off(_place(sender) if error.retry_after else _run(id), retry_after=error.retry_after)
            return False
        except Unreachable as error:
            _log.warning("result.not_sent: cannot report %s to %s: %s", id, _place(sender), error)
            self._put_off(_place(sender), _REFUSED_SECONDS if isinstance(error, Refused) else 0.0)
            return False
        except Exception as error:  # for example: the result cannot be read; others are still sent
            _log.error("result.not_sent: cannot report %s: %s: %s", id, type(error).__name__, error)
            self._put_off(_run(id))
            return False
        self._later.pop(_run(id), None)
        self._later.pop(_place(sender), None)
        self._unstored.pop(id, None)
        self._note(id)
        if sender is not None:
            self._on_taken()
        return True

    def _sender(self, id: str) -> Optional[Sender]:
        """Return the sender for the run's entry."""
        result = self._unstored.get(id)
        try:
            entry = dict(result.entry) if result else self._runs.entry(id)
        except (OSError, ValueError):
            entry = {}
        if not isinstance(entry, dict):
            entry = {}  # an unreadable entry goes to Stoker's channel, if the agent has one
        return self._senders.of(entry, source_of(entry))

    def _waits(self, name: str) -> bool:
        return name in self._later and self._later[name].due > self._started

    def _put_off(self, name: str, seconds: float = 0.0, retry_after: float = 0.0) -> None:
        longest = min(self._longest, _DISK_SECONDS) if name == _DISK else self._longest
        self._later.setdefault(name, _Later(longest)).put_off(seconds, retry_after)

    def _note(self, id: str) -> None:
        try:
            self._runs.acknowledge(id)
            self._unnoted.discard(id)
        except OSError as error:
            _log.error("result.not_marked: cannot record that %s was reported: %s", id, error)
            self._unnoted.add(id)


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


def _pause(later: Mapping[str, _Later]) -> Optional[float]:
    """Return the seconds until the next retry is due, or None if there is none."""
    return max(0.0, min(retry.due for retry in later.values()) - time.monotonic()) if later else None


def _run(id: str) -> str:
    return f"run {id}"


def _place(sender: Optional[Sender]) -> str:
    return f"place {sender.place if sender else ''}"
