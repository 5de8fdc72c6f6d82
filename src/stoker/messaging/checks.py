"""Checks of request values. Each failure raises Invalid and names the value."""

from __future__ import annotations

import re
from typing import Any

from stoker.messaging import limits
from stoker.model.errors import Invalid

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def queue_name(name: Any, what: str = "the queue") -> str:
    """Raises Invalid unless ``name`` is a valid queue name. ``what`` names the value in the error."""
    if not isinstance(name, str) or len(name) > limits.QUEUE_NAME or not _NAME.fullmatch(name):
        raise Invalid(
            f"{what}: {name!r:.100} is not a valid queue name: use 1 to {limits.QUEUE_NAME} ASCII letters, "
            "digits, dots, underscores and dashes"
        )
    return name


def whole(value: Any, name: str, least: int, most: int) -> int:
    """Raises Invalid unless ``value`` is an integer from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{name} must be a whole number, not {value!r:.100}")
    if not least <= value <= most:
        raise Invalid(f"{name} must be at least {least} and at most {most}, not {value!r:.100}")
    return value


def mapping(value: Any, name: str) -> dict[str, Any]:
    """Raises Invalid unless ``value`` is a JSON object."""
    if not isinstance(value, dict):
        raise Invalid(f"{name} must be a JSON object, not {type(value).__name__}")
    return value
