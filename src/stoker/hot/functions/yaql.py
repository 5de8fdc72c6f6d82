"""``{yaql: {expression: text, data: value}}``: what a YAQL expression makes of the data, which is ``$.data`` in it."""

from __future__ import annotations

import importlib
import threading
from functools import cache
from typing import Any

from stoker.hot.bounds import check_plain
from stoker.hot.flaw import Flaw
from stoker.hot.functions._texts import is_call
from stoker.hot.scope import Scope
from stoker.hot.words import clip
from stoker.model.errors import RequestLimitExceeded, StackValidationFailed

NAME = "yaql"
SINCE = "2016-10-14"

_importing = threading.Lock()


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, dict) or not {"expression"} <= set(argument) <= {"expression", "data"}:
        raise StackValidationFailed('"yaql" needs a map with an "expression" and perhaps "data"')
    if isinstance(argument["expression"], str):
        _parse(argument["expression"])
    elif not is_call(argument["expression"]):
        raise StackValidationFailed('"yaql" expression must be text')


def evaluate(argument: Any, scope: Scope) -> Any:
    if not isinstance(argument, dict) or not isinstance(argument.get("expression"), str):
        check(argument, scope.version)
        raise StackValidationFailed('"yaql" expression must be text')
    expression = _parse(argument["expression"])
    try:
        result = _engine().evaluate(expression, argument.get("data", {}), scope.budget)
        check_plain(result)
    except RequestLimitExceeded as error:
        raise RequestLimitExceeded(f'"yaql": {error.message}') from None
    except Flaw as flaw:
        raise StackValidationFailed(f'"yaql": {flaw.sentence}') from None
    except Exception as error:
        # An expression can fail with any Python exception.
        raise StackValidationFailed(f'"yaql": {clip(str(error) or type(error).__name__)}') from None
    return result


def _parse(expression: str) -> Any:
    try:
        return _engine().parse(expression)
    except RequestLimitExceeded as error:
        raise RequestLimitExceeded(f'"yaql": {error.message}') from None
    except Exception as error:
        raise StackValidationFailed(f'"yaql": {clip(str(error))}') from None


def _engine() -> Any:
    """
    The module that imports YAQL, loaded at first use because the import takes a second and few templates need it.

    The lock is needed because YAQL's modules import each other: concurrent imports would see partial modules.
    """
    with _importing:
        return _import_engine()


@cache
def _import_engine() -> Any:
    return importlib.import_module("stoker.hot.functions._yaql_engine")
