"""
``{str_replace: {template: text, params: {word: value, …}}}``: the text with every word replaced.

Longer words go first, equal ones by the alphabet, and what was put in is never searched again.
"""

from __future__ import annotations

from typing import Any

from stoker.hot.functions._texts import as_json, check_length, is_call
from stoker.hot.scope import Scope
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import StackValidationFailed

NAME = "str_replace"
SINCE = "2013-05-23"

#: Maximum number of words times characters: some seconds at worst, and far more than any real template needs.
_MOST_WORK = 500_000_000
#: Earlier versions permit only text, numbers and booleans as values.
_JSON_VALUES = "2015-10-15"


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, dict) or set(argument) != {"template", "params"}:
        raise StackValidationFailed('"str_replace" needs a map with exactly "template" and "params"')
    template, params = argument["template"], argument["params"]
    if not isinstance(template, str) and not is_call(template):
        raise StackValidationFailed(f'"str_replace" template must be text, not {kind_of(template)}')
    if not isinstance(params, dict):
        raise StackValidationFailed(f'"str_replace" params must be a map, not {kind_of(params)}')


def evaluate(argument: Any, scope: Scope) -> str:
    check(argument, scope.version)
    template, params = argument["template"], argument["params"]
    if not isinstance(template, str):
        raise StackValidationFailed(f'"str_replace" template must be text, not {kind_of(template)}')
    words = sorted(params, key=lambda word: (-len(word), word))
    if "" in params:
        raise StackValidationFailed('"str_replace" params must not have an empty key')
    return replace(NAME, template, {word: _text(word, params[word], scope.version) for word in words})


def replace(name: str, template: str, values: dict[str, str]) -> str:
    """
    Replace the words in the order of ``values``. Raises StackValidationFailed if the replacement would take too long.
    """
    if len(values) * len(template) > _MOST_WORK:
        raise StackValidationFailed(f'"{name}": {len(values)} words are too many for a text that long')
    # Even positions hold text that is still searched, odd positions hold inserted text.
    pieces = [template]
    for word, value in values.items():
        searched: list[str] = []
        for index, piece in enumerate(pieces):
            if index % 2 or word not in piece:
                searched.append(piece)
            else:
                first, *rest = piece.split(word)
                searched.append(first)
                for part in rest:
                    searched += (value, part)
        pieces = searched
    check_length(name, sum(map(len, pieces)))
    return "".join(pieces)


def must_occur(name: str, argument: Any) -> None:
    """Raises StackValidationFailed for a word that does not occur in the text."""
    for word in argument["params"]:
        if word not in argument["template"]:
            raise StackValidationFailed(f'"{name}": {quote_word(word)} does not occur in the template')


def _text(word: str, value: Any, version: str) -> str:
    if value is None:
        return ""
    if isinstance(value, (str, bool, int, float)):
        return str(value)
    if version < _JSON_VALUES:
        raise StackValidationFailed(f'"str_replace": {quote_word(word)} must be text or a number, not {kind_of(value)}')
    return as_json(NAME, value)
