"""Converts supplied parameter values to their type. All functions raise ValueError with a reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from stoker.hot.flaw import Flaw
from stoker.hot.text import check_plain, read_json
from stoker.hot.words import kind_of, quote_word
from stoker.json_values import FALSE_WORDS, TRUE_WORDS, parse_boolean

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
#: Longer numbers exceed the range and precision of floats.
_LONGEST_NUMBER = 300


def convert(type_name: str, value: Any) -> Any:
    """Convert ``value`` to a parameter's type, within the limits of plain data."""
    try:
        check_plain(value)
    except Flaw as flaw:
        raise ValueError(flaw.sentence) from None
    return TYPES[type_name](value)


def text(value: Any) -> str:
    """Convert the value of a parameter of type ``string``. Raises ValueError."""
    if isinstance(value, (dict, list)) or value is None:
        raise ValueError(f"text is needed, not {kind_of(value)}")
    return str(value)


def number(value: Any) -> int | float:
    """Convert the value of a parameter of type ``number``. Raises ValueError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER or not _NUMBER.fullmatch(value):
        raise ValueError(f"{_describe(value)} is not a number")
    result = int(value) if _INTEGER.fullmatch(value) else float(value)
    if not math.isfinite(result):
        raise ValueError(f"{quote_word(value)} is too large")
    return result


def boolean(value: Any) -> bool:
    """Convert the value of a parameter of type ``boolean``. Raises ValueError."""
    meaning = None if isinstance(value, (dict, list)) else parse_boolean(str(value))
    if meaning is None:
        words = ", ".join(TRUE_WORDS + FALSE_WORDS)
        raise ValueError(f"{_describe(value)} is not a boolean; acceptable values are {words}")
    return meaning


def comma_delimited_list(value: Any) -> list[str]:
    """Convert the value of a parameter of type ``comma_delimited_list``. Raises ValueError."""
    if isinstance(value, list):
        return [_item(item) for item in value]
    if isinstance(value, dict) or value is None:
        raise ValueError(f"a list or text with commas is needed, not {kind_of(value)}")
    return str(value).split(",") if value != "" else []


def json_value(value: Any) -> Any:
    """Convert the value of a parameter of type ``json``. Raises ValueError."""
    # Heat keeps empty text, and many templates use it for "no value".
    if not isinstance(value, str) or not value:
        return value
    try:
        return read_json(value)
    except ValueError as error:
        raise ValueError(f"Value must be valid JSON: {error}") from None


def _describe(value: Any) -> str:
    return quote_word(value) if isinstance(value, str) else kind_of(value)


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
