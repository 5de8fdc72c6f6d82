"""
Limits for data: JSON's types, text that every database can store, limited depth, and numbers that JSON can express.
"""

from __future__ import annotations

from typing import Any

from stoker.hot.words import kind_of

#: Heat's limits in bytes: for a template, and for a request's body, which limits an environment.
MAX_TEMPLATE = 524_288
MAX_ENVIRONMENT = 1_048_576
#: Far above any real template; low enough for recursion.
MAX_DEPTH = 100
#: About the size of the largest float. JSON has no limit, but its parsers do.
MAX_INTEGER_BITS = 1024


def describe_key(key: Any) -> str:
    """Describe a key that is not text, so that its author can find it."""
    if type(key) is bool:
        return "a boolean (yes, no, on, off, true and false need quotes)"
    return f'a number ("{key}" needs quotes)' if isinstance(key, (int, float)) else kind_of(key)


def text_problem(text: str) -> str | None:
    """The reason why a text cannot be stored; None if it can."""
    if "\0" in text:
        return "holds a NUL character"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half a surrogate pair, which is no character"
    return None
