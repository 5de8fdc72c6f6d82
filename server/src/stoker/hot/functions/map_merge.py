"""``{map_merge: [map, map, …]}``: all entries of all maps; the later one wins."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._texts import is_call
from stoker.hot.scope import Scope
from stoker.hot.words import kind_of
from stoker.model.errors import StackValidationFailed

NAME = "map_merge"
SINCE = "2016-04-08"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) and not is_call(argument):
        raise StackValidationFailed(f'"map_merge" needs a list of maps, not {kind_of(argument)}')


def evaluate(argument: Any, _scope: Scope) -> dict[str, Any]:
    if not isinstance(argument, list):
        raise StackValidationFailed(f'"map_merge" needs a list of maps, not {kind_of(argument)}')
    merged: dict[str, Any] = {}
    for part in argument:
        if part is not None and not isinstance(part, dict):
            raise StackValidationFailed(f'"map_merge" merges maps, not {kind_of(part)}')
        merged |= part or {}
    return merged
