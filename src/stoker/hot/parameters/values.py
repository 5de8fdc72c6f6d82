"""Converts supplied parameter values to their type. All functions raise ValueError with a reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from stoker.hot.bounds import check_plain
from stoker.hot.flaw import Flaw
from stoker.hot.text import read_json
from stoker.hot.words import kind_of, quote_word

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
#: Longer numbers exceed the range and precision of floats.
_LONGEST_NUMBER = 300
_TRUE = ("1", "t", "true", "on", "y", "yes")
_FALSE = ("0", "f", "false", "off", "n", "no")


def convert(type_name: str, given: Any) -> Any:
    """Convert ``given`` to a value of a parameter's type, within the limits of plain data."""
    try:
        check_plain(given)
    except Flaw as flaw:
        raise ValueError(flaw.sentence) from None
    return TYPES[type_name](given)


def text(given: Any) -> str:
    """Convert the value of a parameter of type ``string``. Raises ValueError."""
    if isinstance(given, (dict, list)) or given is None:
        raise ValueError(f"text is needed, not {kind_of(given)}")
    return str(given)


def number(given: Any) -> int | float:
    """Convert the value of a parameter of type ``number``. Raises ValueError."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return given
    if not isinstance(given, str) or len(given) > _LONGEST_NUMBER or not _NUMBER.fullmatch(given):
        raise ValueError(f"{_describe(given)} is not a number")
    found = int(given) if _INTEGER.fullmatch(given) else float(given)
    if not math.isfinite(found):
        raise ValueError(f"{quote_word(given)} is too large")
    return found


def boolean(given: Any) -> bool:
    """Convert the value of a parameter of type ``boolean``. Raises ValueError."""
    word = str(given).strip().lower()
    if isinstance(given, (dict, list)) or word not in _TRUE + _FALSE:
        raise ValueError(f"{_describe(given)} is not a boolean; acceptable values are {', '.join(_TRUE + _FALSE)}")
    return word in _TRUE


def comma_delimited_list(given: Any) -> list[str]:
    """Convert the value of a parameter of type ``comma_delimited_list``. Raises ValueError."""
    if isinstance(given, list):
        return [_item(item) for item in given]
    if isinstance(given, dict) or given is None:
        raise ValueError(f"a list or text with commas is needed, not {kind_of(given)}")
    return str(given).split(",") if given != "" else []


def json_value(given: Any) -> Any:
    """Convert the value of a parameter of type ``json``. Raises ValueError."""
    # Heat keeps empty text, and many templates use it for "no value".
    if not isinstance(given, str) or not given:
        return given
    try:
        return read_json(given)
    except ValueError as error:
        raise ValueError(f"Value must be valid JSON: {error}") from None


def _describe(given: Any) -> str:
    return quote_word(given) if isinstance(given, str) else kind_of(given)


def _item(item: Any) -> str:
    if item is None:
        return ""
    return json.dumps(item) if isinstance(item, (dict, list)) else str(item)


TYPES: dict[str, Callable[[Any], Any]] = {
    "string": text,
    "number": number,
    "comma_delimited_list": comma_delimited_list,
    "json": json_value,
    "boolean": boolean,
}


def format_value(type_name: str, value: Any) -> str:
    """The value as text, as in Heat's API."""
    if type_name == "comma_delimited_list":
        return ",".join(value)
    return json.dumps(value) if type_name == "json" else str(value)
