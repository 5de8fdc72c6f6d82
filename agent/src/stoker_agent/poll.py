"""
The sources of documents: which there are, and which of them answers first.

After several failures in a row, the next source takes over, and the agent retries the earlier ones until they answer. A
source that takes over returns its complete document, whether or not the document changed.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from stoker_agent.backoff import Backoff
from stoker_agent.config import Config, Paths
from stoker_agent.outbox import Outbox
from stoker_agent.settings import Settings, keep, take_over
from stoker_agent.signatures import Verifier
from stoker_agent.status import StatusFile
from stoker_agent.transports import Document, Making, Source, create_source
from stoker_agent.web import Refused, Unreachable

_log = logging.getLogger("stoker-agent")
#: Failures in a row after which the next source is polled.
TRIES = 3
#: The least time between two reports of refused documents.
_REFUSAL_SECONDS = 60.0
#: The longest duration of a poll if no other source is due.
_HELD_SECONDS = 3600.0

#: Receives a document and the name of its source; returns a new list of sources if the document changes them.
OnDocument = Callable[[Document, str], Optional[Sequence[Source]]]


class _Way(Backoff):
    """A source and the time of its next poll."""

    def __init__(self, source: Source, longest: float) -> None:
        super().__init__(longest)
        self.source = source
        self.failures = 0


class Poller:
    """
    Polls sources in order of preference.

    ``on_document`` receives each new document. ``longest`` is the longest pause in seconds between two polls
    without changes, or two retries.
    ``observer`` learns of every answer and of every failure.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        on_document: OnDocument,
        longest: float,
        observer: StatusFile,
    ) -> None:
        self._observer = observer
        self._longest = longest
        self._ways = [_Way(source, longest) for source in sources]
        self._on_document = on_document
        self._current: Optional[Source] = self._ways[0].source if self._ways else None
        self._stopping = False
        self._hurried = False
        #: Whether a result was accepted since the last document. For that alone, Stoker does not send it again.
        self._is_outdated = False
        self._wake = threading.Event()

    def run(self) -> None:
        """Poll until ``stop`` is called."""
        while not self._stopping:
            self._turn()

    def stop(self) -> None:
        """End ``run`` after its current call. Callable from any thread."""
        self._stopping = True
        self._wake.set()

    def hurry(self) -> None:
        """Poll soon, for example because a result was accepted and more runs may follow. Callable from any thread."""
        self._hurried = self._is_outdated = True
        self._wake.set()

    def once(self) -> None:
        """Fetch one document from the first source that answers. Raises Unreachable if none answers."""
        error = Unreachable("there is no source")
        for way in self._ways:
            try:
                self._ask(way, 0)
            except Unreachable as found:
                error = found
            else:
                return
        raise error

    def _turn(self) -> None:
        """Poll one source, or wait until one is due."""
        now = time.monotonic()
        if self._hurried:
            self._hurried = False
            for way in self._ways:
                if not way.failures:
                    way.reset()
                    way.due = min(way.due, now)
        candidates = self._candidates()
        # min() returns the first of several sources that are due at the same time
        way = min(candidates, key=lambda candidate: candidate.due)
        if way.due > now:
            self._wake.wait(way.due - now)
            self._wake.clear()
            return
        others = [candidate.due - now for candidate in candidates if candidate is not way]
        try:
            self._ask(way, max(0.0, min([_HELD_SECONDS, *others])))
        except Unreachable as error:
            self._record_failure(way, error)
        except Exception as error:  # no answer may end the polling thread
            self._record_failure(way, Unreachable(f"{type(error).__name__}: {error}"))

    def _candidates(self) -> List[_Way]:
        """Return the first working source and all failed sources before it."""
        for at, way in enumerate(self._ways):
            if way.failures < TRIES:
                return self._ways[: at + 1]
        return self._ways

    def _ask(self, way: _Way, wait: float) -> None:
        """Fetch from one source and pass its document on. Raises Unreachable."""
        source = way.source
        if source is not self._current or (way.failures and self._is_outdated):
            source.reset()  # a service whose database was restored has the agent's document again
        document = source.fetch(wait)
        self._observer.record_contact(source.name)
        if source is not self._current:
            _log.info("source.used: documents come from %s now", source.name)
            self._current = source
        if way.failures or document is not None:
            way.failures = 0
            way.reset()
        way.due = time.monotonic() + (way.next() if source.pause is None else source.pause)
        if document is not None:
            self._is_outdated = False
            changed = self._on_document(document, source.name)
            if changed is not None:
                self._replace(changed)

    def _record_failure(self, way: _Way, error: Unreachable) -> None:
        self._observer.record_failure(way.source.name, error)
        write = _log.error if isinstance(error, Refused) else _log.warning
        write("poll.failed: cannot poll %s: %s", way.source.name, error)
        if not way.failures:
            way.reset()
        way.failures += TRIES if isinstance(error, Refused) else 1
        way.postpone(error)

    def _replace(self, sources: Sequence[Source]) -> None:
        """Replace the sources. A source in both lists keeps its state."""
        ways = {id(way.source): way for way in self._ways}
        for way in self._ways:
            if way.source not in sources:
                way.source.close()
        self._ways = [ways.get(id(source)) or _Way(source, self._longest) for source in sources]
        if self._current not in sources:
            self._current = None


class SourceSet:
    """
    Creates sources, and replaces them when a document changes the settings.

    ``credential`` is the key that verifies published documents. Stoker learns of refused ones through ``outbox``.
    """

    def __init__(
        self, config: Optional[Config], settings: Settings, paths: Paths, credential: Optional[str], outbox: Outbox
    ) -> None:
        self._outbox = outbox
        self._report_at = 0.0
        self._paths = paths
        self._settings = settings
        #: Whether the current settings could not be stored, for example on a full disk.
        self._unkept = False
        self._enrolled = config is not None
        verifier = Verifier(credential, paths.state, self._report_refusal) if credential else None
        self._making = Making(config, paths.hooks, settings.ca_file, verifier)
        self._made: Dict[str, Source] = {name: self._make(settings, name) for name in settings.usable(self._enrolled)}

    @property
    def sources(self) -> List[Source]:
        """The current sources, in order of preference."""
        return [self._made[name] for name in self._settings.usable(self._enrolled)]

    def update(self, collect: Mapping[str, Any]) -> Optional[Sequence[Source]]:
        """Apply and store a document's ``os-collect-config``. Return the new sources, or None without a change."""
        before, now = self._settings, take_over(self._settings, collect, enrolled=self._enrolled)
        if now != before or self._unkept:
            self._keep(now)
        if (now.order, now.sections) == (before.order, before.sections):
            return None
        names = now.usable(self._enrolled)
        _log.info("sources.changed: the document sets the sources %s", ", ".join(names))
        same = {name for name in before.order if before.sections.get(name) == now.sections.get(name)}
        self._made = {
            name: self._made[name] if name in same and name in self._made else self._make(now, name) for name in names
        }
        self._settings = now
        return self.sources

    def _report_refusal(self, source: str, reason: str) -> None:
        """Report a refused document. A forged one fails verification at every poll, so not each refusal is reported."""
        if time.monotonic() >= self._report_at:
            self._report_at = time.monotonic() + _REFUSAL_SECONDS
            body = {"source": source, "reason": reason}
            self._outbox.post("refusal of a document", "POST", "/agent/v1/refusals", body)

    def _keep(self, settings: Settings) -> None:
        try:
            keep(self._paths.sources, settings)
            self._unkept = False
        except OSError as error:
            _log.error("sources.not_stored: cannot store the sources of the document: %s", error)
            self._unkept = True

    def _make(self, settings: Settings, name: str) -> Source:
        return create_source(name, settings.sections.get(name, {}), self._making)
