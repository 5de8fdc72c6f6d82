"""
Polls the sources of documents and selects the first source that answers.

After several failures in a row, the next source takes over, and the agent retries the earlier ones until they answer. A
source that takes over returns its complete document, whether or not the document changed.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Callable, List, Optional, Sequence

from stoker_agent.backoff import Backoff
from stoker_agent.status import StatusFile
from stoker_agent.transports import Document, Source
from stoker_agent.web import Refused, Unreachable

_log = logging.getLogger("stoker-agent")
#: Failures in a row after which the next source is polled.
TRIES = 3
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
