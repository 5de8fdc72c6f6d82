"""The function that copies a template for each item of lists."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from math import prod
from typing import Any

from stoker.hot.budget import COPY_STEPS
from stoker.hot.functions.base import Function, as_text
from stoker.hot.functions.texts import replace
from stoker.hot.scope import Scope
from stoker.hot.weight import MAX_WEIGHT, weigh
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import StackValidationFailed

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
        if permutations:
            count = prod(map(len, lists))
            combinations: Iterable[tuple[Any, ...]] = itertools.product(*lists)
        else:
            if len({len(items) for items in lists}) > 1:
                raise StackValidationFailed('"repeat" without permutations needs lists of one length')
            count = len(lists[0]) if lists else 0
            combinations = zip(*lists, strict=True)
        # Checked before any copy is made: two long lists, or long items, can describe terabytes.
        if count * (1 + weigh(template)[0]) > MAX_WEIGHT:
            raise StackValidationFailed(f'"repeat" would make {count} copies, which is too much')
        scope.budget.spend(steps=count * COPY_STEPS)
        filling = _Filling()
        return [filling.fill(template, dict(zip(words, chosen, strict=True))) for chosen in combinations]


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
