"""How much searches for counterexamples try, and what ends them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from hypothesis import HealthCheck, settings

#: Multiplies the examples of every search. Use `STOKER_TEST_SEARCH=10 make test` after a change of the searched code.
VARIABLE = "STOKER_TEST_SEARCH"

_Case = TypeVar("_Case")
_CPU_SECONDS = 2.0


def load_profile() -> None:
    """
    Set what all searches have in common, before modules with tests are imported.

    No example has a deadline, because a busy machine may pause it for seconds. Each normal run tries the same examples,
    so that only a change makes a search fail; a deep search tries others each time.
    """
    settings.register_profile(
        "stoker", deadline=None, suppress_health_check=list(HealthCheck), derandomize=VARIABLE not in os.environ
    )
    settings.load_profile("stoker")


@contextmanager
def at_once() -> Iterator[None]:
    """Fail if the body computes for seconds, however long the machine lets it wait."""
    begun = time.thread_time()
    yield
    assert time.thread_time() - begun < _CPU_SECONDS


def examples(ordinary: int) -> int:
    """Return the number of examples; ``ordinary`` is the number in a normal run of the suite."""
    return max(1, round(ordinary * _factor()))


def sample(cases: Sequence[_Case], one_of: int, position: int = 0) -> Sequence[_Case]:
    """
    Return every ``one_of``-th of many similar cases, in a normal run of the suite; all cases in a deep search.

    ``position`` makes the samples of several searches differ, so that together they try all cases.
    """
    step = max(1, round(one_of / _factor()))
    return cases[position % step :: step]


def _factor() -> float:
    return float(os.environ.get(VARIABLE, "1"))
