"""How much searches for counterexamples try."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

#: Multiplies the examples of every search. Use `STOKER_TEST_SEARCH=10 make test` after a change of the searched code.
VARIABLE = "STOKER_TEST_SEARCH"

_Case = TypeVar("_Case")


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
