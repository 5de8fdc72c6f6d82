"""Bring results to the server: from disk, in order, as often as it takes."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any, Dict, Mapping, Optional, Set

from stoker_agent.channel import Busy, Channel, Pauses, Unreachable
from stoker_agent.limits import fitted
from stoker_agent.runs import Runs

_log = logging.getLogger("stoker-agent")
_KEY_REFUSED_SECONDS = 60.0


class Reporter:
    """What the disk will not take is reported all the same, and written as soon as there is room for it."""

    def __init__(self, channel: Channel, runs: Runs) -> None:
        self._channel = channel
        self._runs = runs
        #: Results that are not on disk, and ids whose "acknowledged" is not.
        self._held: Dict[str, Mapping[str, Any]] = {}
        self._unnoted: Set[str] = set()
        self._changed = threading.Condition()
        self._added, self._done = 1, 0  # what an agent before this one left is the first addition
        self._pauses = Pauses()

    def start(self) -> None:
        threading.Thread(target=self._run, name="report", daemon=True).start()

    def add(self, id: str, values: Mapping[str, Any]) -> None:
        """Keep a result and have it reported."""
        try:
            self._runs.end(id, values)
        except OSError as error:
            _log.error("cannot keep the result of %s: %s", id, error)
            self._held[id] = values
        with self._changed:
            self._added += 1
            self._changed.notify_all()

    def wait(self, seconds: Optional[float] = None) -> None:
        """Until everything added so far is reported, or these seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: self._done == self._added, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._done != self._added)
                added = self._added
            while not self._report_all():
                threading.Event().wait(self._pauses.next())
            self._pauses.reset()
            with self._changed:
                self._done = added
                self._changed.notify_all()

    def _report_all(self) -> bool:
        """False when something is left to be tried again."""
        busy = False
        try:
            for id in [*self._runs.unreported(), *list(self._held)]:
                try:
                    if id not in self._unnoted:
                        self._report(id)
                except Busy as error:
                    # It may have trouble with this one only: the others are not held up.
                    _log.warning("cannot report %s: %s", id, error)
                    busy = True
        except Unreachable as error:
            _log.warning("cannot report: %s", error)
            return False
        except OSError as error:
            _log.error("cannot read results: %s", error)
            return False
        for id in list(self._unnoted):
            self._note(id)
        return not busy and not self._unnoted

    def _report(self, id: str) -> None:
        refused = self._send(id, self._held.get(id) or self._runs.result(id))
        if refused is not None:
            # It will not take this one however often it comes, but is to know that the run has ended.
            _log.error("the server refused the result of %s: %s", id, refused)
            reason = f"The server refused the result: {refused}"
            self._send(id, {"deploy_status_reason": reason, "deploy_status_code": 1})
        self._held.pop(id, None)
        self._note(id)

    def _send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """None when the server has it, or wants it no more; else what it says against it."""
        body = json.dumps(fitted(values)).encode()
        answer = self._channel.call("POST", f"/agent/v1/runs/{id}/signal", body, {"Content-Type": "application/json"})
        if answer.status == 401:
            _log.error("the server refuses this agent's key")
            threading.Event().wait(_KEY_REFUSED_SECONDS)
            raise Unreachable("the server refuses this agent's key")
        if answer.status in (200, 404, 410):
            return None
        return f"{answer.status} {answer.body[:300].decode('utf-8', 'replace')}"

    def _note(self, id: str) -> None:
        try:
            self._runs.acknowledge(id)
            self._unnoted.discard(id)
        except OSError as error:
            _log.error("cannot note that %s was reported: %s", id, error)
            self._unnoted.add(id)
