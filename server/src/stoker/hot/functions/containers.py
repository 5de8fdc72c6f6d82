"""Functions that make lists and maps of others, or look into them, and the one that copies a template for each item."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from math import prod
from typing import Any

from stoker.hot.functions.base import Function, as_json, as_text, is_call
from stoker.hot.functions.texts import replace
from stoker.hot.scope import COPY_STEPS, MAX_WEIGHT, Scope, weigh
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
    counts = (2,)
    parts = "the values to leave out, and the list to filter"

    def evaluate(self, argument: Any, scope: Scope) -> list[Any] | None:
        """A null in place of the values removes nothing; a null in place of the list gives null."""
        values, items = argument
        if any(part is not None and not isinstance(part, list) for part in argument):
            raise StackValidationFailed(f'"filter" needs two lists: {self.parts}')
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
    counts = (2,)
    parts = "a value, and a list or text to look in"

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


_REPLACE_PARTS = 'a map, and a map with "keys" or "values" or both'


class MapReplace(Function):
    """``{map_replace: [map, {keys: {old: new}, values: {old: new}}]}``: a map with other keys and values."""

    name = "map_replace"
    since = "2016-10-14"
    counts = (2,)
    parts = _REPLACE_PARTS

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        super().check(argument, version, is_value=is_value)
        wanted = argument[1]
        if isinstance(wanted, dict) and (is_value or not is_call(wanted)) and not set(wanted) <= {"keys", "values"}:
            raise StackValidationFailed(f'"map_replace" needs a list: {_REPLACE_PARTS}')

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
        raise StackValidationFailed(f'"map_replace" needs a list: {_REPLACE_PARTS}')
    return value or {}


#: From the first version on, maps are allowed and iterated by key; from the second, lists can be iterated in parallel.
_MAPS = "2016-10-14"
_SIDE_BY_SIDE = "2017-09-01"


class Repeat(Function):
    """``{repeat: {template, for_each: {word: list, …}}}``: the template for every combination of the items."""

    name = "repeat"
    since = "2015-04-30"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        keys = {"template", "for_each"} | ({"permutations"} if version >= _SIDE_BY_SIDE else set())
        if not isinstance(argument, dict) or not {"template", "for_each"} <= set(argument) <= keys:
            raise StackValidationFailed(f'"repeat" needs a map of {", ".join(sorted(keys))}')
        if not isinstance(argument["for_each"], dict):
            raise StackValidationFailed(f'"repeat" for_each must be a map, not {kind_of(argument["for_each"])}')

    def evaluate(self, argument: Any, scope: Scope) -> list[Any]:
        words, permutations = argument["for_each"], argument.get("permutations", True)
        if not isinstance(permutations, bool):
            raise StackValidationFailed('"repeat" permutations must be true or false')
        lists = [_items(word, values, scope.version, maps=permutations) for word, values in words.items()]
        if any(values is None for values in words.values()):
            return []
        template = argument["template"]
        count, combinations = _combine(lists, permutations=permutations)
        # Checked before any copy is made: two long lists, or long items, can describe terabytes.
        if count * (1 + weigh(template)[0]) > MAX_WEIGHT:
            raise StackValidationFailed(f'"repeat" would make {count} copies, which is too much')
        scope.budget.spend(steps=count * COPY_STEPS)
        filling = _Filling()
        return [filling.fill(template, dict(zip(words, chosen, strict=True))) for chosen in combinations]


def _combine(lists: list[list[Any]], *, permutations: bool) -> tuple[int, Iterable[tuple[Any, ...]]]:
    """The number of combinations of the lists' items, and the combinations: all, or the lists side by side."""
    if permutations:
        return prod(map(len, lists)), itertools.product(*lists)
    if len({len(items) for items in lists}) > 1:
        raise StackValidationFailed('"repeat" without permutations needs lists of one length')
    return len(lists[0]) if lists else 0, zip(*lists, strict=True)


def _items(word: str, values: Any, version: str, *, maps: bool) -> list[Any]:
    if values is None:
        return []
    if isinstance(values, dict) and version >= _MAPS and maps:
        return list(values)
    if not isinstance(values, list):
        raise StackValidationFailed(f'"repeat" goes through lists, but {quote_word(word)} is {kind_of(values)}')
    return values


class _Filling:
    """Creates copies of the template within a limit for their total length."""

    def __init__(self) -> None:
        self._left = MAX_WEIGHT

    def fill(self, value: Any, chosen: dict[str, Any]) -> Any:
        if isinstance(value, dict):
            return {self._text(key, chosen): self.fill(part, chosen) for key, part in value.items()}
        if isinstance(value, list):
            return [self.fill(part, chosen) for part in value]
        return self._whole_or_text(value, chosen) if isinstance(value, str) else value

    def _whole_or_text(self, text: str, chosen: dict[str, Any]) -> Any:
        """A text equal to the word becomes the item itself, of any type; within a longer text, items must be text."""
        return chosen[text] if text in chosen else self._text(text, chosen)

    def _text(self, text: str, chosen: dict[str, Any]) -> str:
        used = {word: item for word, item in chosen.items() if word and word in text}
        for word, item in used.items():
            as_text(Repeat.name, f": within a text {quote_word(word)}", item)
        ordered = sorted(used, key=lambda word: (-len(word), word))
        filled = replace(Repeat.name, text, {word: str(used[word]) for word in ordered}) if used else text
        self._left -= len(filled)
        if self._left < 0:
            raise StackValidationFailed(f'"repeat": the result would be longer than {MAX_WEIGHT} characters')
        return filled
