"""
Know what this server has to run: from the first of its sources that answers.

A source that failed some times in a row is given up for the moment: the next one is asked, and the first again now and
then, until it answers. A source that takes over gives its document whole, whatever it gave before.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Callable, List, Optional, Sequence

from stoker_agent.pauses import LONGEST, Pauses
from stoker_agent.sources import Document, Source
from stoker_agent.web import Refused, Unreachable

_log = logging.getLogger("stoker-agent")
#: Failures in a row after which the next source is asked.
TRIES = 3
_REFUSED_SECONDS = 60.0
#: How long a poll may be held open when nothing else is to be done meanwhile.
_HELD_SECONDS = 3600.0

#: Takes a document and the name of its source; gives other sources, if the document says so.
OnDocument = Callable[[Document, str], Optional[Sequence[Source]]]


class _Way:
    """A source, and how it has been doing."""

    def __init__(self, source: Source, longest: float) -> None:
        self.source = source
        self.failures = 0
        self.due = 0.0
        self.pauses = Pauses(longest)


class Poller:
    """``longest``: seconds between two tries of a source that does not answer."""

    def __init__(self, sources: Sequence[Source], on_document: OnDocument, longest: float = LONGEST) -> None:
        self._longest = longest
        self._ways = [_Way(source, longest) for source in sources]
        self._on_document = on_document
        self._current: Optional[Source] = self._ways[0].source if self._ways else None
        self._stopping = False
        self._hurried = False
        self._wake = threading.Event()

    def run(self) -> None:
        while not self._stopping:
            self._turn()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def hurry(self) -> None:
        """Something new is to be expected soon: a result was taken, say. From any thread."""
        self._hurried = True
        self._wake.set()

    def once(self) -> None:
        """One document, of the first source that answers. Raises Unreachable."""
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
        """One call, or the pause until there is one to make."""
        now = time.monotonic()
        if self._hurried:
            self._hurried = False
            for way in self._ways:
                if not way.failures:
                    way.source.hurry()
                    way.due = min(way.due, now)
        candidates = self._candidates()
        way = min(candidates, key=lambda each: each.due)  # of several, the first
        if way.due > now:
            self._wake.wait(way.due - now)
            self._wake.clear()
            return
        others = [each.due - now for each in candidates if each is not way]
        try:
            self._ask(way, max(0.0, min([_HELD_SECONDS, *others])))
        except Refused as error:
            self._failed(way, error, _REFUSED_SECONDS)
            way.failures += TRIES
        except Unreachable as error:
            self._failed(way, error, way.pauses.next())
        except Exception as error:  # whatever an answer may hold, the next one is asked for
            self._failed(way, Unreachable(f"{type(error).__name__}: {error}"), way.pauses.next())

    def _candidates(self) -> List[_Way]:
        """The first source that is well, and those before it, which may be well again."""
        for at, way in enumerate(self._ways):
            if way.failures < TRIES:
                return self._ways[: at + 1]
        return self._ways

    def _ask(self, way: _Way, wait: float) -> None:
        """Raises Unreachable."""
        source = way.source
        if source is not self._current:
            source.reset()
        found = source.fetch(wait)
        if source is not self._current:
            _log.info("documents come from %s now", source.name)
            self._current = source
        way.failures = 0
        way.pauses.reset()
        way.due = time.monotonic() + source.come_again(found is not None)
        if found is not None:
            changed = self._on_document(found, source.name)
            if changed is not None:
                self._replace(changed)

    def _failed(self, way: _Way, error: Unreachable, pause: float) -> None:
        write = _log.error if isinstance(error, Refused) else _log.warning
        write("cannot poll %s: %s", way.source.name, error)
        way.failures += 1
        way.due = time.monotonic() + pause

    def _replace(self, sources: Sequence[Source]) -> None:
        """Whoever is in both goes on as it was."""
        known = {id(way.source): way for way in self._ways}
        for way in self._ways:
            if way.source not in sources:
                way.source.close()
        self._ways = [known.get(id(source)) or _Way(source, self._longest) for source in sources]
        if self._current not in sources:
            self._current = None
