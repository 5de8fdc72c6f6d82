"""Helpers for error messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

_LONGEST = 1000
_LONGEST_QUOTE = 200
#: Limits of the search for similar words: the cost is the product of all three.
_LONGEST_WORD, _MOST_KNOWN, _ALIKE = 64, 200, 0.7


def kind_of(value: Any) -> str:
    """The name of a value's type."""
    if isinstance(value, bool):
        return "a boolean"
    for kind, word in ((Mapping, "a map"), (str, "text"), (Sequence, "a list"), ((int, float), "a number")):
        if isinstance(value, kind):
            return word
    return "nothing" if value is None else type(value).__name__


def quote_word(value: object) -> str:
    """A user's word, shortened so that the message around it remains readable."""
    text = str(value)
    return f'"{text}"' if len(text) <= _LONGEST_QUOTE else f'"{text[:_LONGEST_QUOTE]}…"'


def suggest(word: object, candidates: Iterable[object]) -> str:
    """A sentence that suggests the most similar known word; empty if none is similar."""
    if not isinstance(word, str) or len(word) > _LONGEST_WORD:
        return ""
    names = [name for name in map(str, islice(candidates, _MOST_KNOWN)) if len(name) <= _LONGEST_WORD]
    close = get_close_matches(word, names, 1, _ALIKE)
    return f'Did you mean "{close[0]}"?' if close else ""


def did_you_mean(word: object, candidates: Iterable[object]) -> str:
    """The suggestion, to end a sentence with."""
    suggestion = suggest(word, candidates)
    return f"; d{suggestion[1:]}" if suggestion else ""


def list_few(names: Iterable[str], most: int = 10) -> str:
    """The first of the names, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def clip(sentence: str) -> str:
    """Shorten a message, because it may repeat an input of half a megabyte."""
    return sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"
