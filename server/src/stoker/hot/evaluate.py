"""Evaluates values that contain function calls."""

from __future__ import annotations

from typing import Any

from stoker.hot import functions
from stoker.hot.calls import LITERAL
from stoker.hot.scope import UNKNOWN, Scope
from stoker.hot.weight import MAX_WEIGHT, weigh

#: The types of values without parts. Most values are such.
_SCALARS = frozenset((str, int, float, bool, type(None)))


def evaluate(value: Any, scope: Scope) -> Any:
    """
    Replace each function call in ``value`` with its result, innermost first; a call with an UNKNOWN argument is
    UNKNOWN, and results are data. Arguments and result may weigh ``MAX_WEIGHT``; the scope's budget raises
    RequestLimitExceeded.
    """
    run = _Evaluation(scope)
    weight = 0
    try:
        result = run.value(value)
        weight = weigh(result)[0]
    finally:
        # A failed evaluation costs as much as a successful one.
        scope.budget.spend(weight=weight + MAX_WEIGHT - run.left, steps=run.calls)
    return result


def is_call(value: Any, version: str) -> bool:
    """Whether the whole value is a function call or a literal."""
    if type(value) is not dict or len(value) != 1:
        return False
    [name] = value
    return name in functions.evaluators(version) or name == LITERAL


class _Evaluation:
    """One evaluation. The reader limits the depth of the recursion. Keep the code fast: it runs for every value."""

    __slots__ = ("_scope", "_table", "calls", "left")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._table = functions.evaluators(scope.version)
        #: Remaining weight for the arguments of functions.
        self.left = MAX_WEIGHT
        self.calls = 0

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
            return {name: part if type(part) in _SCALARS else self.value(part) for name, part in value.items()}
        if kind is list:
            return [part if type(part) in _SCALARS else self.value(part) for part in value]
        return value

    def _call(self, function: functions.Function, argument: Any) -> Any:
        self.calls += 1
        if type(argument) is not str:
            weight, unknown = weigh(argument, self.left)
            self.left -= weight
            if unknown:
                return UNKNOWN
        function.check(argument, self._scope.version, is_value=True)
        return function.evaluate(argument, self._scope)
