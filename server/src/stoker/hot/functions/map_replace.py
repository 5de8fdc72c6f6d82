"""``{map_replace: [map, {keys: {old: new}, values: {old: new}}]}``: a map with other keys and values."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._texts import is_call
from stoker.hot.scope import Scope
from stoker.hot.words import quote_word
from stoker.model.errors import StackValidationFailed

NAME = "map_replace"
SINCE = "2016-10-14"

_SHAPE = '"map_replace" needs a list: a map, and a map with "keys" or "values" or both'


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed(_SHAPE)
    wanted = argument[1]
    if isinstance(wanted, dict) and not is_call(wanted) and not set(wanted) <= {"keys", "values"}:
        raise StackValidationFailed(_SHAPE)


def evaluate(argument: Any, scope: Scope) -> dict[str, Any]:
    check(argument, scope.version)
    source, wanted = argument
    source, wanted = _map(source), _map(wanted)
    if not set(wanted) <= {"keys", "values"}:
        raise StackValidationFailed(_SHAPE)
    keys, values = _map(wanted.get("keys")), _map(wanted.get("values"))
    changed: dict[str, Any] = {}
    for old, value in source.items():
        key = keys.get(old)
        key = old if key is None else key
        if not isinstance(key, str):
            raise StackValidationFailed(f'"map_replace": the new key for {quote_word(old)} must be text')
        if key in changed:
            raise StackValidationFailed(f'"map_replace": two keys would be {quote_word(key)}')
        changed[key] = values.get(value, value) if isinstance(value, str) else value
    return changed


def _map(value: Any) -> dict[str, Any]:
    """Null counts as an empty map."""
    if value is not None and not isinstance(value, dict):
        raise StackValidationFailed(_SHAPE)
    return value or {}
