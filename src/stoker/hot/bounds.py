"""What data may look like: JSON's types, text that every store can hold, not too deep, numbers that JSON can write."""

from __future__ import annotations

import math
from typing import Any

from stoker.hot.flaw import Flaw
from stoker.hot.paths import Path, dotted
from stoker.hot.words import kind_of
from stoker.model.errors import Invalid

#: Heat's limit for a template, in bytes; and for a request's body, which bounds an environment.
MAX_TEMPLATE = 524_288
MAX_ENVIRONMENT = 1_048_576
#: Far above any real template; low enough that walking by recursion is always safe.
MAX_DEPTH = 100
#: Roughly the largest float; JSON has no limit, but its readers do.
MAX_INTEGER_BITS = 1024


def check_plain(root: Any, path: Path = ()) -> None:
    """Raise a flaw unless ``root`` could have come from a JSON text within our bounds. Never recurses."""
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
            raise Flaw(f"{dotted(path) or 'top level'}: {problem}", path, Invalid)


def _children(value: Any, path: Path) -> list[tuple[Any, Path]]:
    """The parts worth a look. Plain short text is most of a template, so it is looked at here, without a path."""
    if type(value) is list:
        return [(item, (*path, index)) for index, item in enumerate(value) if not _harmless(item)]
    for key in value:
        if type(key) is not str or not key.isascii() or "\0" in key:
            check_key(key, path)
    return [(item, (*path, key)) for key, item in value.items() if not _harmless(item)]


def _harmless(value: Any) -> bool:
    return type(value) is str and value.isascii() and "\0" not in value


def check_key(key: Any, path: Path) -> None:
    place = dotted(path) or "top level"
    if type(key) is not str:
        raise Flaw(f"{place}: keys must be text, not {described(key)}", path, Invalid)
    problem = text_problem(key)
    if problem:
        raise Flaw(f"{place}: a key {problem}", path, Invalid)


def described(key: Any) -> str:
    """A key that is no text, in words that help to find it."""
    if type(key) is bool:
        return "a boolean (yes, no, on, off, true and false need quotes)"
    return f'a number ("{key}" needs quotes)' if isinstance(key, (int, float)) else kind_of(key)


def text_problem(text: str) -> str | None:
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
