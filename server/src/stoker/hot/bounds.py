"""
Limits for data: JSON's types, text that every database can store, limited depth, and numbers that JSON can express.
"""

from __future__ import annotations

import math
from typing import Any

from stoker.hot.flaw import Flaw
from stoker.hot.paths import Path, dotted_path
from stoker.hot.words import kind_of
from stoker.model.errors import Invalid

#: Heat's limits in bytes: for a template, and for a request's body, which limits an environment.
MAX_TEMPLATE = 524_288
MAX_ENVIRONMENT = 1_048_576
#: Far above any real template; low enough for recursion.
MAX_DEPTH = 100
#: About the size of the largest float. JSON has no limit, but its parsers do.
MAX_INTEGER_BITS = 1024


def check_plain(root: Any, path: Path = ()) -> None:
    """Raise a flaw unless ``root`` is JSON data within these limits. Does not recurse."""
    pending: list[tuple[Any, Path]] = [(root, path)]
    limit = MAX_DEPTH + len(path)
    while pending:
        value, path = pending.pop()
        kind = type(value)
        if kind is str:
            problem = text_problem(value)
        elif kind is dict or kind is list:
            problem = "nested too deeply" if len(path) >= limit else None
            if not problem:
                pending.extend(_children(value, path))
        else:
            problem = _scalar_problem(value)
        if problem:
            raise Flaw(f"{dotted_path(path) or 'top level'}: {problem}", path, Invalid)


def _children(value: Any, path: Path) -> list[tuple[Any, Path]]:
    """The parts that need a check. Plain ASCII text, most of a template, is checked here without building its path."""
    if type(value) is list:
        return [(item, (*path, index)) for index, item in enumerate(value) if not _harmless(item)]
    for key in value:
        if type(key) is not str or not key.isascii() or "\0" in key:
            check_key(key, path)
    return [(item, (*path, key)) for key, item in value.items() if not _harmless(item)]


def _harmless(value: Any) -> bool:
    return type(value) is str and value.isascii() and "\0" not in value


def check_key(key: Any, path: Path) -> None:
    """Raise a flaw unless ``key`` is text that can be stored."""
    place = dotted_path(path) or "top level"
    if type(key) is not str:
        raise Flaw(f"{place}: keys must be text, not {describe_key(key)}", path, Invalid)
    problem = text_problem(key)
    if problem:
        raise Flaw(f"{place}: a key {problem}", path, Invalid)


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


def _scalar_problem(value: Any) -> str | None:
    if value is None or type(value) is bool:
        return None
    if type(value) is int:
        return "the number is too large" if value.bit_length() > MAX_INTEGER_BITS else None
    if type(value) is float:
        return None if math.isfinite(value) else "infinity and NaN are no JSON numbers"
    return f"{kind_of(value)} is no JSON value"
