"""``{filter: [values, list]}``: the list without those values."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._lists import comparable
from stoker.hot.scope import Scope
from stoker.model.errors import StackValidationFailed

NAME = "filter"
SINCE = "2017-02-24"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed('"filter" needs a list: the values to leave out, and the list to filter')


def evaluate(argument: Any, scope: Scope) -> list[Any] | None:
    """A null in place of the values removes nothing; a null in place of the list gives null."""
    check(argument, scope.version)
    values, items = argument
    if any(part is not None and not isinstance(part, list) for part in argument):
        raise StackValidationFailed('"filter" needs two lists: the values to leave out, and the list to filter')
    if not items:
        return [] if items == [] else None
    unwanted = {comparable(value) for value in values or ()}
    return [item for item in items if comparable(item) not in unwanted]
