"""
YAQL with additional limits. Import this module through ``yaql.engine``, because importing YAQL takes a second.

YAQL limits the items of one iteration and the size of one object. It limits neither nested loops nor nested values:
forty nested pairs amount to a terabyte when written, compared or hashed, in one call that holds the interpreter lock.
Therefore every call is counted and every result is weighed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any

import yaql
from yaql.language import contexts, factory, utils

from stoker.hot.budget import YAQL_STEPS, Budget
from stoker.hot.functions import _yaql_bounds, _yaql_regex
from stoker.hot.weight import MAX_LEVELS
from stoker.model.errors import RequestLimitExceeded

#: Heat's limits: items of one iteration, and bytes of one object without its parts.
_ITERATORS = 200
_MEMORY = 10_000
#: Maximum weight of one value: its items and characters, including its parts.
MAX_VALUE = 1_048_576
#: Maximum characters of an expression; the parsed form takes about a hundred times as much memory.
MAX_EXPRESSION = 32_768
_CACHED_EXPRESSION = 1024

_OPTIONS = {"yaql.limitIterators": _ITERATORS, "yaql.memoryQuota": _MEMORY, "yaql.convertTuplesToLists": True}
_engine = factory.YaqlFactory().create(_OPTIONS)
_standard = _yaql_regex.register(_yaql_bounds.bound_context(yaql.create_context(regex=False)))
#: The parser is not thread-safe.
_parsing = threading.Lock()


def parse(expression: str) -> Any:
    """Parse an expression for ``evaluate``. Raises YAQL's errors, and RequestLimitExceeded."""
    if len(expression) > MAX_EXPRESSION:
        raise RequestLimitExceeded(f"the expression has more than {MAX_EXPRESSION} characters")
    return _parse_cached(expression) if len(expression) <= _CACHED_EXPRESSION else _parse(expression)


def _parse(expression: str) -> Any:
    with _parsing:
        return _engine(expression)


_parse_cached = lru_cache(maxsize=256)(_parse)


def evaluate(parsed: Any, data: Any, budget: Budget) -> Any:
    """Evaluate an expression on ``data``. Raises errors of YAQL and of the functions, and RequestLimitExceeded."""
    with budget.evaluate_yaql():
        meter = _Meter(budget)
        return _plain(parsed.evaluate(context=_MeteredContext(_standard, meter), data={"data": data}))


class _MeteredContext(contexts.Context):  # type: ignore[misc]  # YAQL has no types
    """Counts the calls of an expression: YAQL calls all functions through their context."""

    def __init__(self, parent: Any, meter: _Meter) -> None:
        super().__init__(parent)
        self._meter = meter
        # Lets functions spend more, as regular expressions do for each match.
        self.budget = meter.budget

    def create_child_context(self) -> _MeteredContext:
        return _MeteredContext(self, self._meter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = super().__call__(*args, **kwargs)

        def metered(*args: Any, **kwargs: Any) -> Any:
            self.budget.spend(steps=YAQL_STEPS)
            self.budget.check_deadline()
            result = call(*args, **kwargs)
            self._meter.check(result)
            return result

        return metered


class _Meter:
    """Weighs the results of one expression. Each object is weighed once."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        #: Object id → the object, its weight and its depth; the reference keeps the id valid.
        self._known: dict[int, tuple[Any, int, int]] = {}

    def check(self, value: Any) -> None:
        """Raises RequestLimitExceeded if a value is too large or too deep."""
        self._measure(value)

    def _measure(self, value: Any) -> tuple[int, int]:
        """Weight and depth of a value. An iterator weighs nothing until a function consumes it."""
        if isinstance(value, str):
            return 1 + len(value), 0
        if isinstance(value, Mapping):
            parts: Any = (part for item in value.items() for part in item)
        elif isinstance(value, (tuple, list, Set)):
            parts = value
        else:
            return 1, 0
        measured = self._known.get(id(value))
        if measured is not None and not utils.is_mutable(value):
            return measured[1:]
        weight, levels = 1, 0
        for part in parts:
            added, below = self._measure(part)
            weight += added
            levels = max(levels, below)
        levels += 1
        if weight > MAX_VALUE:
            raise RequestLimitExceeded(f"a value would be too large: more than {MAX_VALUE} characters and items")
        if levels > MAX_LEVELS:
            raise RequestLimitExceeded(f"a value would have more than {MAX_LEVELS} levels")
        self.budget.spend(weight=1 + len(value))
        self._known[id(value)] = value, weight, levels
        return weight, levels


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple | set | frozenset) else value
