"""What the functions that build text share."""

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
    """Before the text is put together: two functions inside one another can ask for terabytes."""
    if length > MAX_WEIGHT:
        raise StackValidationFailed(f'"{name}": the result would be longer than {MAX_WEIGHT} characters')


def is_call(value: Any) -> bool:
    """Whether an argument as written may be a function, whose result no one knows yet."""
    return isinstance(value, dict) and len(value) == 1
