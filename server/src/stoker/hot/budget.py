"""
The total cost limit of evaluating templates.

Values share their parts, so a short template can describe gigabytes of data or hours of work, spread over many values
that are each within ``weight.MAX_WEIGHT``. Each request that checks templates and each transaction that evaluates them
creates one ``Budget``, which includes nested stacks and outputs and is passed as ``Scope.budget``.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.errors import RequestLimitExceeded


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits of one budget."""

    #: Characters and items of all values, as ``weigh`` counts them.
    weight: int = 12 * 1024 * 1024
    #: One per function call, ten per copy made by ``repeat``.
    steps: int = 1_000_000
    #: Processor time of all YAQL expressions in seconds. Unlike elapsed time, it does not depend on the machine's load.
    yaql_seconds: float = 2.0


#: Steps for a copy made by ``repeat``.
COPY_STEPS = 10


class Budget:
    """Remaining cost of one request or transaction. Not thread-safe. Methods raise RequestLimitExceeded."""

    __slots__ = ("_limits", "_steps", "_weight", "yaql_seconds")

    def __init__(self, limits: BudgetLimits | None = None) -> None:
        self._limits = limits or BudgetLimits()
        self._weight = self._limits.weight
        self._steps = self._limits.steps
        #: Remaining processor time of YAQL expressions.
        self.yaql_seconds = self._limits.yaql_seconds

    def spend(self, *, weight: int = 0, steps: int = 0) -> None:
        """Subtract weight and steps from the remaining cost."""
        self._weight -= weight
        self._steps -= steps
        if self._weight < 0:
            raise RequestLimitExceeded(
                f"all values together would be too large: more than {self._limits.weight} characters and items. "
                "Use fewer or shorter values, or split the stack."
            )
        if self._steps < 0:
            raise RequestLimitExceeded(
                f"evaluation would take too long: more than {self._limits.steps} steps. "
                "Shorten the lists that repeat goes through, or split the stack."
            )

    def spend_yaql(self, seconds: float) -> None:
        """Subtract the processor time of a YAQL expression from the remaining time."""
        self.yaql_seconds -= seconds
        if self.yaql_seconds <= 0:
            raise RequestLimitExceeded(
                f"YAQL expressions take too long: more than {self._limits.yaql_seconds:g} s. Make them simpler."
            )
