"""
Types of unquoted YAML words: PyYAML's rules (YAML 1.1), which Heat uses, except dates. Text that cannot be stored.

Dates stay text, as ``heat_template_version: 2018-08-31`` requires.
"""

from __future__ import annotations

import math
from typing import Any

from yaml import ScalarNode
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from stoker.hot.words import kind_of

_PREFIX = "tag:yaml.org,2002:"
_RESOLVER = Resolver()
_CONSTRUCTOR = SafeConstructor()
_TYPED = {
    f"{_PREFIX}int": _CONSTRUCTOR.construct_yaml_int,
    f"{_PREFIX}float": _CONSTRUCTOR.construct_yaml_float,
    f"{_PREFIX}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{_PREFIX}null": _CONSTRUCTOR.construct_yaml_null,
}
#: Tags that a template may contain; all others (binary, sets, language objects) are not JSON.
_TEXT = ("!", f"{_PREFIX}str", f"{_PREFIX}timestamp")
_CONTAINERS = {"map": f"{_PREFIX}map", "seq": f"{_PREFIX}seq"}
#: Maximum length of a number: base-60 numbers take quadratic time to parse.
_MAX_NUMBER = 100

#: Maximum depth of data: far above any real template; low enough for recursion.
MAX_DEPTH = 100

#: A word that begins with any other character is text.
FIRST_LETTERS = frozenset(Resolver.yaml_implicit_resolvers) - {None}


def plain(word: str) -> Any:
    """The value of an unquoted word. Raises ValueError for values that JSON cannot express."""
    tag: str = _RESOLVER.resolve(ScalarNode, word, (True, False))  # type: ignore[no-untyped-call]  # not annotated
    return _parse_typed(tag, word) if tag in _TYPED else word


def parse_tagged(tag: str, text: str) -> Any:
    """The value of a scalar with an explicit tag. Raises ValueError."""
    if tag in _TYPED:
        return _parse_typed(tag, text)
    if tag in _TEXT:
        return text
    raise ValueError(f"the tag {short(tag)} is not supported")


def check_container(tag: str | None, kind: str) -> None:
    """Check the tag of a map or list; ``kind`` is ``map`` or ``seq``. Raises ValueError."""
    if tag not in (None, "!", _CONTAINERS[kind]):
        raise ValueError(f"the tag {short(tag or '')} is not supported")


def short(tag: str) -> str:
    """Return the tag with YAML's prefix abbreviated to ``!!``."""
    return tag.replace(_PREFIX, "!!", 1)


def _parse_typed(tag: str, text: str) -> Any:
    if len(text) > _MAX_NUMBER:
        raise ValueError("the number is too long")
    try:
        value = _TYPED[tag](ScalarNode(tag, text))
    except (ValueError, KeyError, IndexError, OverflowError):
        raise ValueError(f'"{text}" is no {short(tag).lstrip("!")}') from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("infinity and NaN are no JSON numbers")
    return value


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
