"""Putting paths together and taking answers apart."""

from typing import Any
from urllib.parse import quote

from stoker_client.errors import BadAnswer, BadInput


def segment(text: str) -> str:
    """``text`` as one part of a path, whatever characters it has."""
    if not text:
        raise BadInput("a name or id is missing: it is empty")
    return quote(text, safe="")


def part(answer: Any, key: str) -> Any:
    """The value under ``key``, which every proper answer has."""
    if not isinstance(answer, dict) or key not in answer:
        raise BadAnswer(f"the service's answer has no {key!r}: is it an orchestration service?")
    return answer[key]
