"""Helpers of the functions that build text."""

from __future__ import annotations

import json
from typing import Any

from stoker.hot.weight import MAX_WEIGHT
from stoker.model.errors import StackValidationFailed


def as_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except (RecursionError, TypeError, ValueError):
        raise StackValidationFailed(f'"{name}": a value cannot be written as JSON') from None


def check_length(name: str, length: int) -> None:
    """
    Check the length before the text is built: two nested functions can describe terabytes. Raises if it is too long.
    """
    if length > MAX_WEIGHT:
        raise StackValidationFailed(f'"{name}": the result would be longer than {MAX_WEIGHT} characters')


def is_call(value: Any) -> bool:
    """Whether an unevaluated argument may be a function call, whose result is not known yet."""
    return isinstance(value, dict) and len(value) == 1
