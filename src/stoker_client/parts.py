"""Putting paths together and taking answers apart."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from stoker_client.errors import BadAnswer, BadInput, NotFound

Thing = TypeVar("Thing")


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


def found(
    show: Callable[[str], Thing], listed: Callable[[], Iterable[Mapping[str, Any]]], ref: str, noun: str
) -> Thing:
    """What ``show`` gives for an id, or for a name as long as only one of those ``listed`` has it."""
    try:
        return show(ref)
    except NotFound:
        named = [each["id"] for each in listed() if each["name"] == ref]
        if not named:
            raise
    if len(named) > 1:
        raise BadInput(f"{len(named)} {noun}s are named {ref!r}; give the id (`stoker {noun} list`)")
    return show(named[0])
