"""What the functions that join lists share."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._texts import is_call
from stoker.hot.words import kind_of
from stoker.model.errors import StackValidationFailed


def check_lists(name: str, argument: Any) -> None:
    if not isinstance(argument, list) and not is_call(argument):
        raise StackValidationFailed(f'"{name}" needs a list of lists, not {kind_of(argument)}')


def joined(name: str, argument: Any) -> list[Any]:
    """The items of all lists; a null stands for an empty one."""
    if not isinstance(argument, list):
        raise StackValidationFailed(f'"{name}" needs a list of lists, not {kind_of(argument)}')
    for each in argument:
        if each is not None and not isinstance(each, list):
            raise StackValidationFailed(f'"{name}" joins lists, not {kind_of(each)}')
    return [item for each in argument for item in each or ()]


def comparable(value: Any) -> Any:
    """Equal for equal values, and fit for a set: long lists are compared by what they hold, not each with each."""
    if isinstance(value, dict):
        return "map", frozenset((key, comparable(part)) for key, part in value.items())
    return ("list", tuple(map(comparable, value))) if isinstance(value, list) else value
