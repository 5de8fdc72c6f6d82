"""
Conditional requests and byte ranges. Pure functions.

Werkzeug's parser of Range refuses overlapping and descending ranges, which Swift serves.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from stoker.http import etags
from stoker.model.errors import Invalid, PreconditionFailed
from stoker.model.objects import Stored

_SECOND = 1_000_000
_RANGE = re.compile(r"\s*(\d{0,18})\s*-\s*(\d{0,18})\s*")
#: Swift's limits of a request: ranges, overlapping pairs of ranges, and ranges that are not in ascending order.
_MOST_RANGES, _MOST_OVERLAPS, _MOST_UNORDERED = 50, 2, 7


def is_unchanged(stored: Stored, headers: Mapping[str, str]) -> bool:
    """Return whether the client already has the current object (304). Raises PreconditionFailed."""
    _must_be(stored, headers)
    if (tags := headers.get("if-none-match")) is not None:
        return etags.matches(tags, stored.etag)
    since = _time(headers.get("if-modified-since"))
    return since is not None and _serialize(stored) <= since


def for_put(headers: Mapping[str, str], old: Stored | None) -> None:
    """
    Check the conditions of a PUT. ``old`` is the existing object.

    Raises PreconditionFailed, or Invalid for a condition that PUT does not support.
    """
    none_match = headers.get("if-none-match")
    if none_match is not None:
        if "*" not in etags.split(none_match):
            raise Invalid("If-None-Match only supports *")
        if old is not None:
            raise PreconditionFailed(f"the object {old.name} exists already")
    _must_be(old, headers)


def for_delete(headers: Mapping[str, str], old: Stored | None) -> None:
    """Check the conditions of a DELETE. Raises PreconditionFailed."""
    if old is not None:
        _must_be(old, headers)


def ranges(stored: Stored, headers: Mapping[str, str]) -> list[tuple[int, int]] | None:
    """
    Return the requested ranges as (first byte, last byte + 1).

    None means the whole object: the request has no valid Range header. An empty list means 416: no requested byte
    exists, or the request exceeds a limit for ranges. Overlapping ranges are merged, so that a response is never larger
    than the object.
    """
    value = headers.get("range")
    if value is None or ("if-range" in headers and not etags.matches(headers["if-range"], stored.etag)):
        return None
    unit, equals, parts = value.partition("=")
    if not equals or unit.strip().lower() != "bytes":
        return None
    satisfiable = []
    for piece in parts.split(","):
        matched = _RANGE.fullmatch(piece)
        if matched is None or not any(matched.groups()):
            return None
        first, last = matched.groups()
        if first and last and int(last) < int(first):
            return None
        start, end = _bounds(first, last, stored.size)
        if start < end:
            satisfiable.append((start, end))
    return [] if parts.count(",") >= _MOST_RANGES or _is_abusive(satisfiable) else _coalesce(satisfiable)


def _is_abusive(parts: list[tuple[int, int]]) -> bool:
    """Return whether Swift would refuse these ranges, as RFC 9110, 14.2 permits."""
    pairs = itertools.combinations(parts, 2)
    overlaps = sum(max(one[0], other[0]) < min(one[1], other[1]) for one, other in pairs)
    is_ordered = all(one[0] <= other[0] for one, other in itertools.pairwise(parts))
    return overlaps > _MOST_OVERLAPS or (not is_ordered and len(parts) > _MOST_UNORDERED)


def _coalesce(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping ranges, and keep the requested order."""
    merged: list[tuple[int, int]] = []
    for start, end in parts:
        touched = [part for part in merged if max(part[0], start) < min(part[1], end)]
        whole = min([start, *(part[0] for part in touched)]), max([end, *(part[1] for part in touched)])
        place = merged.index(touched[0]) if touched else len(merged)
        merged.insert(place, whole)
        merged = [part for index, part in enumerate(merged) if index == place or part not in touched]
    return merged


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


def _must_be(stored: Stored | None, headers: Mapping[str, str]) -> None:
    tags = headers.get("if-match")
    if tags is not None and (stored is None or not etags.matches(tags, stored.etag)):
        raise PreconditionFailed("A precondition for this request was not met: If-Match")
    since = _time(headers.get("if-unmodified-since"))
    if since is not None and stored is not None and _serialize(stored) > since:
        raise PreconditionFailed("A precondition for this request was not met: If-Unmodified-Since")


def _serialize(stored: Stored) -> int:
    """Return Last-Modified in seconds, rounded up."""
    return -(-stored.modified_at // _SECOND)


def _time(value: str | None) -> float | None:
    """Parse an HTTP date. Return None for an invalid date, because invalid conditions are ignored."""
    if value is None:
        return None
    try:
        time = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
