"""``{filter: [values, list]}``: the list without those values."""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import Scope
from stoker.model.errors import StackValidationFailed

NAME = "filter"
SINCE = "2017-02-24"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed('"filter" needs a list: the values to leave out, and the list to filter')


def evaluate(argument: Any, scope: Scope) -> list[Any]:
    check(argument, scope.version)
    values, items = argument
    if not isinstance(values, list) or not isinstance(items, list):
        raise StackValidationFailed('"filter" needs two lists: the values to leave out, and the list to filter')
    return [item for item in items if item not in values]
