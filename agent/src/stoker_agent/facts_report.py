"""Sends the machine's facts to Stoker when they have changed: at the start, after runs, and about once an hour."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import threading
import time
from typing import Any, Dict, List, Mapping

from stoker_agent.config import Config, Paths
from stoker_agent.disk import Disk
from stoker_agent.facts import collect
from stoker_agent.files import read_map, write_json
from stoker_agent.outbox import Outbox
from stoker_agent.tools import list_versions

_log = logging.getLogger("stoker-agent")
#: Seconds from the start until the versions of tools are read, so that the first runs need not share the CPU.
_VERSIONS_SECONDS = 20.0
_INTERVAL_SECONDS = 3600.0
#: Seconds between the end of a run and the collection, and the least time between two collections.
_AFTER_RUN_SECONDS, _LEAST_SECONDS = 1.0, 10.0
#: Unchanged facts are sent again after this time, in case that Stoker lost them, or accepts them since an upgrade.
_REPEAT_SECONDS = 86_400.0
#: Maximum bytes of a report.
LARGEST = 32 * 1024


class FactsReporter(threading.Thread):
    """
    Collects facts, and sends them through ``outbox``.

    ``<state>/facts.json`` has the digest that Stoker has answered, and known versions of tools. ``active`` are the runs
    in progress, and ``disk`` tells why none can begin.
    """

    def __init__(
        self,
        config: Config,
        paths: Paths,
        outbox: Outbox,
        active: Mapping[str, object],
        disk: Disk,
    ) -> None:
        super().__init__(name="facts", daemon=True)
        self._config, self._paths, self._outbox = config, paths, outbox
        self._active, self._disk = active, disk
        self._state = paths.state / "facts.json"
        saved = read_map(self._state)
        tools = saved.get("tools")
        #: The cache of ``list_versions``.
        self._tools: Dict[str, List[Any]] = tools if isinstance(tools, dict) else {}
        #: Digest of the facts that Stoker has accepted, or refused, and the time (time.time) of its answer.
        self._answered = saved.get("answered")
        self._answered_at = saved.get("at")
        self._is_due = threading.Event()
        disk.on_change = self.announce

    def announce(self) -> None:
        """Collect the facts soon, for example because a run has ended that may have changed them."""
        self._is_due.set()

    def run(self) -> None:
        """Report the facts as long as the process lasts."""
        began, is_idle = time.monotonic(), False
        while True:
            self._is_due.clear()
            pause = self.report(read_versions=is_idle)
            collected_at = time.monotonic()
            if self._is_due.wait(pause if is_idle else min(pause, _VERSIONS_SECONDS)):
                time.sleep(max(_AFTER_RUN_SECONDS, collected_at + _LEAST_SECONDS - time.monotonic()))
            is_idle = time.monotonic() - began >= _VERSIONS_SECONDS and not self._active

    def report(self, *, read_versions: bool = True) -> float:
        """Collect the facts and send them if Stoker does not have them. Return the seconds until the next time."""
        try:
            facts = self._collect(read_versions=read_versions)
        except Exception as error:  # an unexpected file of this machine; runs must go on
            _log.error("facts.not_collected: %s: %s", type(error).__name__, error)
            return _INTERVAL_SECONDS
        digest = hashlib.sha256(self._config.server_id.encode() + _encode(facts)).hexdigest()
        at = self._answered_at
        is_recent = isinstance(at, (int, float)) and 0 <= time.time() - at < _REPEAT_SECONDS
        if digest == self._answered and is_recent:
            self._save()
        else:
            self._outbox.post("facts", "PUT", "/agent/v1/facts", facts, lambda _: self._end(digest))
        return _INTERVAL_SECONDS * random.uniform(0.9, 1.1)  # noqa: S311 — spreads the agents of a site

    def _collect(self, *, read_versions: bool) -> Dict[str, Any]:
        tools = list_versions(self._tools, read=read_versions)
        facts = collect(self._paths.hooks, self._paths.site_facts, tools)
        if self._disk.reason:
            facts["problem"] = self._disk.reason[:2000]
        size = len(_encode(facts))
        if size > LARGEST and facts.pop("custom", None) is not None:
            path = self._paths.site_facts
            _log.warning("facts.too_large: the facts of %s are left out: all facts have %d bytes", path, size)
        return facts

    def _end(self, digest: str) -> None:
        self._answered, self._answered_at = digest, int(time.time())
        self._save()

    def _save(self) -> None:
        state = {"answered": self._answered, "at": self._answered_at, "tools": self._tools}
        try:
            if read_map(self._state) != state:
                write_json(self._state, state)
        except OSError as error:
            _log.warning("facts.not_stored: cannot store which facts were sent: %s", error)


def _encode(facts: Dict[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
