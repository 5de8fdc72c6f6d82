"""Which source is asked, and when: the first that is well, and those before it now and then."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker_agent import backoff
from stoker_agent.poll import TRIES, Poller
from stoker_agent.status import StatusFile
from stoker_agent.transports import Document
from stoker_agent.web import Busy, Refused, Unreachable
from support.waiting import until

pytestmark = pytest.mark.usefixtures("short_pauses")


class Scripted:
    """A source that does what it is told; it has news when its document was put there, or after a reset."""

    def __init__(self, name: str, pause: float | None = 0.005) -> None:
        self.name = name
        self.pause = pause
        self.error: Exception | None = None
        #: The number of further calls that fail.
        self.failures = 0
        self.document = Document([{"id": name}], {})
        self.fresh = True
        self.fetched = 0
        self.closed = False

    def fetch(self, wait: float) -> Document | None:
        self.fetched += 1
        if self.failures:
            self.failures -= 1
            raise Unreachable("away")
        if self.error is not None:
            raise self.error
        fresh, self.fresh = self.fresh, False
        return self.document if fresh else None

    def reset(self) -> None:
        self.fresh = True

    def close(self) -> None:
        self.closed = True


class Following:
    """A poller, and what it told. ``changes`` are the sources to use after the document of a source."""

    def __init__(
        self, *sources: Scripted, changes: dict[str, list[Scripted]] | None = None, longest: float = 0.01
    ) -> None:
        self.told: list[str] = []
        self._changes = changes or {}
        self.poller = Poller(sources, self._take, longest, StatusFile(Path(os.devnull), []))
        self._thread = threading.Thread(target=self.poller.run, daemon=True)

    def _take(self, document: Document, source: str) -> Any:
        self.told.append(source)
        return self._changes.pop(source, None)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.poller.stop()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def follow() -> Iterator[Callable[..., Following]]:
    made = []

    def one(*sources: Scripted, **changes: Any) -> Following:
        made.append(Following(*sources, **changes))
        made[-1].start()
        return made[-1]

    yield one
    for each in made:
        each.stop()


def test_a_short_failure_of_the_first_source_does_not_switch_to_another(follow):
    first, second = Scripted("first"), Scripted("second")
    following = follow(first, second)
    until(lambda: first.fetched > 5)
    count = first.fetched
    first.failures = TRIES - 1
    until(lambda: first.fetched > count + TRIES + 2)
    assert (second.fetched, following.told) == (0, ["first"])


@pytest.mark.parametrize("error", [Unreachable("away"), Refused("no"), KeyError("odd")])
def test_the_next_source_is_used_until_the_first_one_answers_again(follow, error):
    first, second, third = Scripted("first"), Scripted("second"), Scripted("third")
    first.error = error
    following = follow(first, second, third)
    until(lambda: following.told == ["second"])
    if isinstance(error, Refused):
        assert first.fetched == 1
        return  # it is asked again after a minute
    assert first.fetched >= TRIES
    first.error = None
    until(lambda: following.told == ["second", "first"])
    count = second.fetched
    until(lambda: first.fetched > 30)
    assert second.fetched == count
    assert third.fetched == 0
    first.error = error
    until(lambda: following.told == ["second", "first", "second"])  # whole, though it told of it before


def test_sources_return_in_any_order_after_an_outage_of_all(follow):
    sources = [Scripted(name) for name in ("first", "second", "third")]
    for each in sources:
        each.error = Unreachable("away")
    following = follow(*sources)
    until(lambda: sources[2].fetched >= TRIES)
    told = []
    for each in reversed(sources):
        each.error = None
        told.append(each.name)
        until(lambda: following.told == told)


def test_hurry_polls_a_source_at_once(follow):
    first = Scripted("first", pause=1000.0)
    following = follow(first)
    until(lambda: first.fetched == 1)
    for turn in range(2, 5):
        following.poller.hurry()
        until(lambda turn=turn: first.fetched == turn)


def test_pauses_grow_up_to_the_interval_and_are_short_again_after_news_or_an_accepted_result():
    source = Scripted("first", pause=None)
    poller = Following(source, longest=30.0).poller
    pauses: list[float] = []

    class Skipped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            poller._ways[0].due = 0.0
            return True

    def poll(count: int) -> list[float]:
        pauses.clear()
        while len(pauses) < count:
            poller._turn()
        return pauses

    poller._wake = Skipped()
    assert poll(16)[0] <= backoff.SHORTEST
    assert 1.0 < pauses[-1] <= 30.0
    source.fresh = True
    assert poll(1)[0] <= backoff.SHORTEST
    poll(5)
    poller.hurry()
    assert poll(1)[0] <= backoff.SHORTEST


def test_a_source_that_was_away_returns_its_document_after_an_accepted_result():
    """Its database may have been restored meanwhile, and the agent may have the document of the backup."""
    first = Scripted("first", pause=0.0)
    following = Following(first)
    following.poller._turn()
    first.failures = 1
    following.poller._turn()
    following.poller.hurry()  # before the poll is tried again
    while first.fetched < 3:
        following.poller._turn()
    assert following.told == ["first", "first"]


def test_a_document_may_change_the_sources(follow):
    first, second, new = Scripted("first"), Scripted("second"), Scripted("new")
    following = follow(first, second, changes={"first": [new, second]})
    until(lambda: following.told == ["first", "new"])
    until(lambda: new.fetched > 3)
    assert (first.fetched, first.closed, second.closed) == (1, True, False)


def test_a_single_pass_uses_the_first_source_that_answers():
    first, second = Scripted("first"), Scripted("second")
    first.error = Unreachable("away")
    following = Following(first, second)
    following.poller.once()
    assert following.told == ["second"]
    second.error = Unreachable("away too")
    with pytest.raises(Unreachable, match="away too"):
        following.poller.once()


def test_polls_wait_as_long_as_an_overloaded_server_requests():
    source = Scripted("stoker")
    source.error = Busy("the server answered 503", 100.0)
    poller = Following(source).poller
    pauses: list[float | None] = []

    class FirstWait(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            poller.stop()
            return True

    poller._wake = FirstWait()
    poller.run()
    assert pauses[0] is not None and 99 < pauses[0] <= 125
