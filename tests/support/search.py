"""The number of examples in searches for counterexamples."""

from __future__ import annotations

import os

#: Multiplies the examples of every search. Use `STOKER_TEST_SEARCH=10 make test` after a change of the searched code.
VARIABLE = "STOKER_TEST_SEARCH"


def examples(ordinary: int) -> int:
    """Return the number of examples; ``ordinary`` is the number in a normal run of the suite."""
    return max(1, round(ordinary * float(os.environ.get(VARIABLE, "1"))))
