"""Values with functions in them to plain values."""

from __future__ import annotations

from typing import Any

from stoker.hot import functions
from stoker.hot.functions import Evaluate
from stoker.hot.literal import LITERAL
from stoker.hot.scope import UNKNOWN, Scope
from stoker.hot.weight import MAX_WEIGHT, weigh


def evaluate(value: Any, scope: Scope) -> Any:
    """
    ``value`` with every function replaced by its result, inside out.

    A function given anything UNKNOWN is UNKNOWN itself. What functions return is data: it is never evaluated again.
    What functions are given, and the whole result, may not amount to more than ``MAX_WEIGHT``.
    """
    run = _Evaluation(scope)
    result = run.value(value)
    weigh(result)
    return result


class _Evaluation:
    """Depth is bounded by the reader, so recursion is safe. Runs for every value of every resource: keep it lean."""

    __slots__ = ("_budget", "_scope", "_table")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._table = functions.evaluators(scope.version)
        self._budget = MAX_WEIGHT

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            if len(value) == 1:
                [(name, argument)] = value.items()
                function = self._table.get(name)
                if function is not None:
                    return self._call(function, self.value(argument))
                if name == LITERAL:
                    return argument
            return {name: self.value(part) for name, part in value.items()}
        if kind is list:
            return [self.value(part) for part in value]
        return value

    def _call(self, function: Evaluate, argument: Any) -> Any:
        if type(argument) is not str:
            weight, unknown = weigh(argument, self._budget)
            self._budget -= weight
            if unknown:
                return UNKNOWN
        return function(argument, self._scope)
