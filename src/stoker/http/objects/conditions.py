"""What a request asks to be so before anything is done, and which part of the bytes it wants. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from stoker.model.errors import Invalid, PreconditionFailed
from stoker.model.objects import Stored

_SECOND = 1_000_000
_RANGE = re.compile(r"\s*(\d{0,18})\s*-\s*(\d{0,18})\s*")
#: More than so many parts are a burden and no help.
_MOST_RANGES = 50


def unchanged(stored: Stored, headers: Mapping[str, str]) -> bool:
    """Whether the asker has it already (304). Raises PreconditionFailed."""
    _must_be(stored, headers)
    if (tags := headers.get("if-none-match")) is not None:
        return _matches(tags, stored.etag)
    since = _time(headers.get("if-modified-since"))
    return since is not None and _shown(stored) <= since


def for_put(headers: Mapping[str, str], old: Stored | None) -> None:
    """Raises PreconditionFailed; Invalid for what no PUT can ask."""
    none_match = headers.get("if-none-match")
    if none_match is not None:
        if "*" not in _tags(none_match):
            raise Invalid("If-None-Match only supports *")
        if old is not None:
            raise PreconditionFailed(f"the object {old.name} exists already")
    _must_be(old, headers)


def for_delete(headers: Mapping[str, str], old: Stored | None) -> None:
    """Raises PreconditionFailed."""
    if old is not None:
        _must_be(old, headers)


def ranges(stored: Stored, headers: Mapping[str, str]) -> list[tuple[int, int]] | None:
    """
    (first byte, one behind the last) of each part that is wanted and there; None: all of it, as nothing else was
    asked for, or nothing that makes sense. An empty list: nothing of what is wanted is there (416).
    """
    said = headers.get("range")
    if said is None or ("if-range" in headers and not _matches(headers["if-range"], stored.etag)):
        return None
    unit, equals, parts = said.partition("=")
    if not equals or unit.strip().lower() != "bytes":
        return None
    found = []
    pieces = parts.split(",")
    for piece in pieces:
        matched = _RANGE.fullmatch(piece)
        if matched is None or not any(matched.groups()):
            return None
        first, last = matched.groups()
        if first and last and int(last) < int(first):
            return None
        start, end = _bounds(first, last, stored.size)
        if start < end:
            found.append((start, end))
    if len(pieces) > _MOST_RANGES:
        return []
    return found


def etag(said: str) -> str:
    """Without the quotes and the W/ that some put around it."""
    return said.strip().removeprefix("W/").strip('"').lower()


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


def _must_be(stored: Stored | None, headers: Mapping[str, str]) -> None:
    tags = headers.get("if-match")
    if tags is not None and (stored is None or not _matches(tags, stored.etag)):
        raise PreconditionFailed("A precondition for this request was not met: If-Match")
    since = _time(headers.get("if-unmodified-since"))
    if since is not None and stored is not None and _shown(stored) > since:
        raise PreconditionFailed("A precondition for this request was not met: If-Unmodified-Since")


def _matches(tags: str, own: str) -> bool:
    return bool({"*", own} & _tags(tags))


def _tags(said: str) -> set[str]:
    return {etag(each) for each in said.split(",")}


def _shown(stored: Stored) -> int:
    """Last-Modified, in seconds: rounded up."""
    return -(-stored.modified_at // _SECOND)


def _time(said: str | None) -> float | None:
    """None for what is no time: such a condition is none."""
    if said is None:
        return None
    try:
        found = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
