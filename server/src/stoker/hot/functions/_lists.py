"""Helpers of the functions that join lists."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._texts import is_call
from stoker.hot.words import kind_of
from stoker.model.errors import StackValidationFailed


def check_lists(name: str, argument: Any) -> None:
    """Raises StackValidationFailed for an unevaluated argument that cannot be a list of lists."""
    if not isinstance(argument, list) and not is_call(argument):
        raise StackValidationFailed(f'"{name}" needs a list of lists, not {kind_of(argument)}')


def concatenate(name: str, argument: Any) -> list[Any]:
    """The items of all lists; null counts as an empty list."""
    if not isinstance(argument, list):
        raise StackValidationFailed(f'"{name}" needs a list of lists, not {kind_of(argument)}')
    for part in argument:
        if part is not None and not isinstance(part, list):
            raise StackValidationFailed(f'"{name}" joins lists, not {kind_of(part)}')
    return [item for part in argument for item in part or ()]


def comparable(value: Any) -> Any:
    """Map equal values to equal hashable values, so that long lists can be compared by sets."""
    if isinstance(value, dict):
        return "map", frozenset((key, comparable(part)) for key, part in value.items())
    return ("list", tuple(map(comparable, value))) if isinstance(value, list) else value
