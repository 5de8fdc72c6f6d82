"""Words for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_LONGEST = 1000
_LONGEST_QUOTE = 200


def kind_of(value: Any) -> str:
    """What a value is."""
    if isinstance(value, bool):
        return "a boolean"
    for kind, word in ((Mapping, "a map"), (str, "text"), (Sequence, "a list"), ((int, float), "a number")):
        if isinstance(value, kind):
            return word
    return "nothing" if value is None else type(value).__name__


def quoted(value: object) -> str:
    """A user's own word, shortened so that what is said of it still fits."""
    text = str(value)
    return f'"{text}"' if len(text) <= _LONGEST_QUOTE else f'"{text[:_LONGEST_QUOTE]}…"'


def clip(sentence: str) -> str:
    """Errors repeat what was handed in, which may be half a megabyte of one word."""
    return sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"
