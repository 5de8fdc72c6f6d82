"""
The total cost limit of evaluating templates.

Values share their parts, so a short template can describe gigabytes of data or hours of work, spread over many values
that are each within ``weight.MAX_WEIGHT``. Each request that checks templates and each transaction that evaluates them
creates one ``Budget``, which includes nested stacks and outputs and is passed as ``Scope.budget``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stoker.model.errors import RequestLimitExceeded


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits of one budget."""

    #: Characters and items of all values, as ``weigh`` counts them.
    weight: int = 12 * 1024 * 1024
    #: One per function call, ten per copy made by ``repeat`` and per call within a YAQL expression.
    steps: int = 1_000_000
    #: Processor time of all YAQL expressions in seconds. Unlike elapsed time, it does not depend on the machine's load.
    yaql_seconds: float = 2.0


#: Steps for a copy made by ``repeat``.
COPY_STEPS = 10
#: Steps for a call within a YAQL expression.
YAQL_STEPS = 10


class Budget:
    """
    Remaining cost of one request or transaction. Not thread-safe.

    Every method raises RequestLimitExceeded if its limit is exceeded.
    """

    __slots__ = ("_deadline", "_limits", "_seconds", "_steps", "_weight")

    def __init__(self, limits: BudgetLimits | None = None) -> None:
        self._limits = limits or BudgetLimits()
        self._weight = self._limits.weight
        self._steps = self._limits.steps
        self._seconds = self._limits.yaql_seconds
        #: End of the current YAQL expression on this thread's processor clock.
        self._deadline: float | None = None

    def spend(self, *, weight: int = 0, steps: int = 0) -> None:
        """Subtract weight and steps from the remaining cost."""
        self._weight -= weight
        self._steps -= steps
        if self._weight < 0:
            raise RequestLimitExceeded(
                f"all values together would be too large: more than {self._limits.weight} characters and items "
                "(setting max_template_values). Use fewer or shorter values, or split the stack."
            )
        if self._steps < 0:
            raise RequestLimitExceeded(
                f"evaluation would take too long: more than {self._limits.steps} steps. "
                "Shorten the lists that repeat and yaql go through, or split the stack."
            )

    @contextmanager
    def evaluate_yaql(self) -> Iterator[None]:
        """Count the processor time of one YAQL expression; ``check_deadline`` stops the expression."""
        started = time.thread_time()
        self._deadline = started + self._seconds
        try:
            yield
        finally:
            self._seconds -= time.thread_time() - started
            self._deadline = None

    def check_deadline(self) -> None:
        """Called about every 0.1 ms during a YAQL expression; lets other threads run, in particular the event loop."""
        time.sleep(0)
        if self._deadline is not None and time.thread_time() > self._deadline:
            raise RequestLimitExceeded(
                f"YAQL expressions take too long: more than {self._limits.yaql_seconds:g} s. Make them simpler."
            )
