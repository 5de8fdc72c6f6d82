"""``{yaql: {expression: text, data: value}}``: what a YAQL expression makes of the data, which is ``$.data`` in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stoker.hot.bounds import check_plain
from stoker.hot.flaw import Flaw
from stoker.hot.functions._texts import is_call
from stoker.hot.scope import Scope
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed

NAME = "yaql"
SINCE = "2016-10-14"

#: Heat's own limits: items of one iteration, and what one expression may hold at a time.
_ITERATORS = 200
_MEMORY = 10_000


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, dict) or not {"expression"} <= set(argument) <= {"expression", "data"}:
        raise StackValidationFailed('"yaql" needs a map with an "expression" and perhaps "data"')
    if isinstance(argument["expression"], str):
        _parsed(argument["expression"])
    elif not is_call(argument["expression"]):
        raise StackValidationFailed('"yaql" expression must be text')


def evaluate(argument: Any, scope: Scope) -> Any:
    check(argument, scope.version)
    if not isinstance(argument["expression"], str):
        raise StackValidationFailed('"yaql" expression must be text')
    expression = _parsed(argument["expression"])
    data = argument.get("data", {})
    try:
        found = _plain(expression.evaluate(context=_context().create_child_context(), data={"data": data}))
        check_plain(found)
    except Flaw as flaw:
        raise StackValidationFailed(f'"yaql": {flaw.sentence}') from None
    except Exception as error:
        # An expression of a user's can fail in any way that Python code can.
        raise StackValidationFailed(f'"yaql": {clip(str(error) or type(error).__name__)}') from None
    return found


@lru_cache(maxsize=256)
def _parsed(expression: str) -> Any:
    try:
        return _engine()(expression)
    except Exception as error:
        raise StackValidationFailed(f'"yaql": {clip(str(error))}') from None


@lru_cache(maxsize=1)
def _engine() -> Any:
    # Late: yaql takes a while to import, and few templates use it.
    from yaql.language import factory

    options = {"yaql.limitIterators": _ITERATORS, "yaql.memoryQuota": _MEMORY, "yaql.convertTuplesToLists": True}
    return factory.YaqlFactory().create(options)


@lru_cache(maxsize=1)
def _context() -> Any:
    import yaql

    from stoker.hot.functions._yaql_bounds import bounded

    return bounded(yaql.create_context())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple | set | frozenset) else value
