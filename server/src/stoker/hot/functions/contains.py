"""``{contains: [value, sequence]}``: whether a list has an item, or a text contains another."""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import Scope
from stoker.model.errors import StackValidationFailed

NAME = "contains"
SINCE = "2017-09-01"
CONDITION_SINCE = "2017-09-01"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed('"contains" needs a list: a value, and a list or text to look in')


def evaluate(argument: Any, scope: Scope) -> bool:
    check(argument, scope.version)
    value, sequence = argument
    if isinstance(sequence, str):
        if not isinstance(value, str):
            raise StackValidationFailed('"contains": in a text only text can be')
        return value in sequence
    if not isinstance(sequence, list):
        raise StackValidationFailed('"contains" looks in a list or a text')
    return value in sequence
