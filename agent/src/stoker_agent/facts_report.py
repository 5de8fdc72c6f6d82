"""Sends the machine's facts to Stoker when they have changed: at the start, after runs, and about once an hour."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Optional

from stoker_agent.backoff import Backoff
from stoker_agent.channel import Channel
from stoker_agent.config import Config, Paths
from stoker_agent.facts import collect
from stoker_agent.files import write
from stoker_agent.tools import Tools
from stoker_agent.web import Unreachable

_log = logging.getLogger("stoker-agent")
#: Seconds from the start until the versions of tools are read, so that the first runs need not share the CPU.
_VERSIONS_SECONDS = 20.0
_INTERVAL_SECONDS = 3600.0
#: Seconds between the end of a run and the collection, and the least time between two collections.
_AFTER_RUN_SECONDS, _LEAST_SECONDS = 1.0, 10.0
#: Unchanged facts are sent again after this time, in case that Stoker lost them.
_REPEAT_SECONDS = 86_400.0
_RETRY_SECONDS = 300.0
#: Maximum bytes of a report.
LARGEST = 32 * 1024


class FactsReporter:
    """
    Collects and sends facts in a thread.

    ``<state>/facts.json`` has the digest that Stoker acknowledged, and known versions of tools. ``is_busy`` tells
    whether a run is in progress, ``problem`` why no run can begin, or "".
    """

    def __init__(
        self, config: Config, paths: Paths, is_busy: Callable[[], bool], problem: Callable[[], str] = lambda: ""
    ) -> None:
        self._config, self._paths, self._is_busy, self._problem = config, paths, is_busy, problem
        self._state = paths.state / "facts.json"
        saved = _read_state(self._state)
        self._tools = Tools(saved.get("tools"))
        #: Digest of the facts that Stoker has, and the time (time.time) of its acknowledgment.
        self._acknowledged = saved.get("acknowledged")
        self._acknowledged_at = saved.get("at")
        #: Digest of facts that Stoker refuses: the same facts are not sent again.
        self._refused: Optional[str] = None
        self._backoff = Backoff(_RETRY_SECONDS)
        self._changed = threading.Condition()
        self._due = 0.0

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="facts", daemon=True).start()

    def report(self) -> None:
        """Collect the facts and send them now, if Stoker does not have them. Failures are logged."""
        self._report(read_versions=True)

    def announce(self) -> None:
        """Collect the facts soon, for example because a run has ended that may have changed them."""
        with self._changed:
            self._due = min(self._due, time.monotonic() + _AFTER_RUN_SECONDS)
            self._changed.notify_all()

    def _run(self) -> None:
        began = time.monotonic()
        pause = self._report(read_versions=False)
        pause = min(pause, _VERSIONS_SECONDS)
        while True:
            self._wait(pause)
            idle = time.monotonic() - began >= _VERSIONS_SECONDS and not self._is_busy()
            pause = self._report(read_versions=idle)
            if not idle:
                pause = min(pause, _VERSIONS_SECONDS)

    def _wait(self, seconds: float) -> None:
        """Wait so many seconds, or until a run has ended; at least ``_LEAST_SECONDS`` since the last collection."""
        last = time.monotonic()
        with self._changed:
            self._due = last + seconds
            while True:
                left = max(self._due, min(last + _LEAST_SECONDS, last + seconds)) - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _report(self, *, read_versions: bool) -> float:
        """Collect the facts and send them if Stoker does not have them. Return the seconds until the next time."""
        try:
            body = self._collect(read_versions=read_versions)
        except Exception as error:  # an unexpected file of this machine; runs must go on
            _log.error("facts.not_collected: %s: %s", type(error).__name__, error)
            return _INTERVAL_SECONDS
        digest = hashlib.sha256(self._config.server_id.encode() + body).hexdigest()
        at = self._acknowledged_at
        is_recent = isinstance(at, (int, float)) and 0 <= time.time() - at < _REPEAT_SECONDS
        if digest == self._refused or (digest == self._acknowledged and is_recent):
            self._save()
            return _INTERVAL_SECONDS * random.uniform(0.9, 1.1)  # noqa: S311 — spreads the agents of a site
        try:
            self._send(body, digest)
        except Unreachable as error:
            pause = self._backoff.next(error.retry_after)
            _log.debug("facts.not_sent: cannot send facts, the next attempt is in %.0f s: %s", pause, error)
            return pause
        self._backoff.reset()
        self._save()
        return _INTERVAL_SECONDS * random.uniform(0.9, 1.1)  # noqa: S311 — spreads the agents of a site

    def _collect(self, *, read_versions: bool) -> bytes:
        tools = self._tools.list_versions(read=read_versions)
        facts = collect(self._paths.hooks, self._paths.site_facts, tools)
        problem = self._problem()
        if problem:
            facts["problem"] = problem[:2000]
        body = _encode(facts)
        if len(body) > LARGEST and facts.pop("custom", None) is not None:
            _log.warning(
                "facts.too_large: the facts of %s are left out: all facts have %d bytes",
                self._paths.site_facts,
                len(body),
            )
            body = _encode(facts)
        return body

    def _send(self, body: bytes, digest: str) -> None:
        """Send the facts. Raises Unreachable."""
        channel = Channel(self._config)
        try:
            answer = channel.call("PUT", "/agent/v1/facts", body, {"Content-Type": "application/json"})
        finally:
            channel.close()  # the next report is an hour away
        if answer.status in (401, 403):
            raise Unreachable("the server refuses this agent's key")
        if answer.status == 204:
            self._acknowledged, self._acknowledged_at, self._refused = digest, int(time.time()), None
        else:
            self._refused = digest
            _log.warning("facts.refused: Stoker refuses the facts: %s", answer.summary())

    def _save(self) -> None:
        state = {"acknowledged": self._acknowledged, "at": self._acknowledged_at, "tools": self._tools.cache}
        data = json.dumps(state, sort_keys=True).encode()
        try:
            if not self._state.exists() or self._state.read_bytes() != data:
                write(self._state, data)
        except OSError as error:
            _log.warning("facts.not_stored: cannot store which facts were sent: %s", error)


def _encode(facts: Dict[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


def _read_state(path: Path) -> Dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
