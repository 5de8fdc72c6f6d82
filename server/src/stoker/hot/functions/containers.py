"""Functions that make lists and maps of others, or look into them."""

from __future__ import annotations

from typing import Any

from stoker.hot.functions.base import Function, as_json, check_parts, is_call
from stoker.hot.scope import Scope
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import StackValidationFailed


class ListConcat(Function):
    """``{list_concat: [list, list, …]}``: all items of all lists, one after the other."""

    name = "list_concat"
    since = "2017-09-01"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        if not isinstance(argument, list) and (is_value or not is_call(argument)):
            raise StackValidationFailed(f'"{self.name}" needs a list of lists, not {kind_of(argument)}')

    def evaluate(self, argument: Any, scope: Scope) -> list[Any]:
        """Null counts as an empty list."""
        for part in argument:
            if part is not None and not isinstance(part, list):
                raise StackValidationFailed(f'"{self.name}" joins lists, not {kind_of(part)}')
        return [item for part in argument for item in part or ()]


class ListConcatUnique(ListConcat):
    """``{list_concat_unique: [list, list, …]}``: all items of all lists, each as often as once."""

    name = "list_concat_unique"

    def evaluate(self, argument: Any, scope: Scope) -> list[Any]:
        # Compared as JSON, because maps and lists are not hashable; JSON also distinguishes 1 from true.
        items = reversed(super().evaluate(argument, scope))
        return list({as_json(self.name, item): item for item in items}.values())[::-1]


class Filter(Function):
    """``{filter: [values, list]}``: the list without those values."""

    name = "filter"
    since = "2017-02-24"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        check_parts(argument, (2,), '"filter" needs a list: the values to leave out, and the list to filter')

    def evaluate(self, argument: Any, scope: Scope) -> list[Any] | None:
        """A null in place of the values removes nothing; a null in place of the list gives null."""
        values, items = argument
        if any(part is not None and not isinstance(part, list) for part in argument):
            raise StackValidationFailed('"filter" needs two lists: the values to leave out, and the list to filter')
        if not items:
            return [] if items == [] else None
        unwanted = {_comparable(value) for value in values or ()}
        return [item for item in items if _comparable(item) not in unwanted]


def _comparable(value: Any) -> Any:
    """Map equal values to equal hashable values, so that long lists can be compared by sets."""
    if isinstance(value, dict):
        return "map", frozenset((key, _comparable(part)) for key, part in value.items())
    return ("list", tuple(map(_comparable, value))) if isinstance(value, list) else value


class Contains(Function):
    """``{contains: [value, sequence]}``: whether a list has an item, or a text contains another."""

    name = "contains"
    since = "2017-09-01"
    condition_since = "2017-09-01"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        check_parts(argument, (2,), '"contains" needs a list: a value, and a list or text to look in')

    def evaluate(self, argument: Any, scope: Scope) -> bool:
        value, sequence = argument
        if isinstance(sequence, str):
            if not isinstance(value, str):
                raise StackValidationFailed('"contains": in a text only text can be')
            return value in sequence
        if not isinstance(sequence, list):
            raise StackValidationFailed('"contains" looks in a list or a text')
        return value in sequence


class MapMerge(Function):
    """``{map_merge: [map, map, …]}``: all entries of all maps; the later one wins."""

    name = "map_merge"
    since = "2016-04-08"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        if not isinstance(argument, list) and (is_value or not is_call(argument)):
            raise StackValidationFailed(f'"map_merge" needs a list of maps, not {kind_of(argument)}')

    def evaluate(self, argument: Any, scope: Scope) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for part in argument:
            if part is not None and not isinstance(part, dict):
                raise StackValidationFailed(f'"map_merge" merges maps, not {kind_of(part)}')
            merged |= part or {}
        return merged


_REPLACE_SHAPE = '"map_replace" needs a list: a map, and a map with "keys" or "values" or both'


class MapReplace(Function):
    """``{map_replace: [map, {keys: {old: new}, values: {old: new}}]}``: a map with other keys and values."""

    name = "map_replace"
    since = "2016-10-14"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        check_parts(argument, (2,), _REPLACE_SHAPE)
        wanted = argument[1]
        if isinstance(wanted, dict) and (is_value or not is_call(wanted)) and not set(wanted) <= {"keys", "values"}:
            raise StackValidationFailed(_REPLACE_SHAPE)

    def evaluate(self, argument: Any, scope: Scope) -> dict[str, Any]:
        source, wanted = map(_map_or_empty, argument)
        keys, values = _map_or_empty(wanted.get("keys")), _map_or_empty(wanted.get("values"))
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


def _map_or_empty(value: Any) -> dict[str, Any]:
    """Null counts as an empty map."""
    if value is not None and not isinstance(value, dict):
        raise StackValidationFailed(_REPLACE_SHAPE)
    return value or {}
