"""Builds request paths and reads answers."""

from typing import Any
from urllib.parse import quote

from stoker_client.errors import BadAnswer, BadInput


def segment(text: str) -> str:
    """Return ``text`` quoted as one segment of a path. Raises BadInput if it cannot be a segment."""
    if not text:
        raise BadInput("a name or id is missing: it is empty")
    if text in (".", ".."):
        raise BadInput(f"{text!r} is neither a name nor an id")
    return quote(text, safe="")


def part(answer: Any, key: str) -> Any:
    """Return the value under ``key``. Raises BadAnswer without it, because every valid answer has the key."""
    if not isinstance(answer, dict) or key not in answer:
        raise BadAnswer(f"the service's answer has no {key!r}: is it an orchestration service?")
    return answer[key]
