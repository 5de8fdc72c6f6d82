"""``{"Fn::Select": [index, list]}``: the item of a list, or of a map by its key; nothing there is an empty text."""

from __future__ import annotations

from typing import Any

from stoker.hot.scope import Scope
from stoker.hot.text import read_json
from stoker.hot.words import kind_of
from stoker.model.errors import StackValidationFailed

NAME = "Fn::Select"
SINCE = "2013-05-23"
CONDITION_SINCE = ""
UNTIL = "2015-10-15"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed('"Fn::Select" needs a list: an index and a list, or a key and a map')


def evaluate(argument: Any, scope: Scope) -> Any:
    check(argument, scope.version)
    index, among = argument
    if isinstance(among, str) and among:
        among = _read(among)
    if among is None or among == "":
        return ""
    if isinstance(among, dict):
        if not isinstance(index, str):
            raise StackValidationFailed(f'"Fn::Select": the key of a map must be text, not {kind_of(index)}')
        return among.get(index, "")
    if not isinstance(among, list):
        raise StackValidationFailed(f'"Fn::Select" selects from a list or a map, not from {kind_of(among)}')
    number = _number(index)
    return among[number] if 0 <= number < len(among) else ""


def _read(text: str) -> Any:
    """A list or map may be JSON text, for example from an output."""
    try:
        return read_json(text)
    except ValueError:
        raise StackValidationFailed('"Fn::Select" selects from a list or a map, not from text') from None


def _number(index: Any) -> int:
    try:
        if not isinstance(index, (bool, float)):
            return int(index)
    except (TypeError, ValueError):
        pass
    raise StackValidationFailed('"Fn::Select": the index of a list must be a whole number')
