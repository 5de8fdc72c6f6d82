"""``{str_split: [delimiter, text, index]}``: the parts of a text, or the one at ``index``; -1 is the last."""

from __future__ import annotations

from typing import Any

from stoker.hot.paths import index_of
from stoker.hot.scope import Scope
from stoker.model.errors import StackValidationFailed

NAME = "str_split"
SINCE = "2015-10-15"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) not in (2, 3):
        raise StackValidationFailed('"str_split" needs a list: a delimiter, a text and perhaps an index')


def evaluate(argument: Any, scope: Scope) -> Any:
    check(argument, scope.version)
    delimiter, text = argument[:2]
    if text is None:
        return None
    if not isinstance(delimiter, str) or not delimiter or not isinstance(text, str):
        raise StackValidationFailed('"str_split" needs a delimiter and a text')
    parts = text.split(delimiter)
    return parts if len(argument) == 2 else parts[_index(argument[2], len(parts))]


def _index(value: Any, count: int) -> int:
    try:
        index = index_of(value)
    except ValueError:
        raise StackValidationFailed('"str_split": the index must be a whole number') from None
    if not -count <= index < count:
        raise StackValidationFailed(f'"str_split": there is no part {index}, only 0 to {count - 1}')
    return index
