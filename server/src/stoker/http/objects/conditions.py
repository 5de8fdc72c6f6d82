"""Conditional requests and byte ranges. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from stoker.http.request import matches_tag, split_tags
from stoker.model.errors import Invalid, PreconditionFailed
from stoker.model.objects import Stored

_SECOND = 1_000_000
_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.ASCII | re.IGNORECASE)


def is_unchanged(stored: Stored, headers: Mapping[str, str]) -> bool:
    """Return whether the client already has the current object (304). Raises PreconditionFailed."""
    _must_be(stored, headers)
    if (tags := headers.get("if-none-match")) is not None:
        return matches_tag(tags, stored.etag)
    since = _time(headers.get("if-modified-since"))
    return since is not None and _serialize(stored) <= since


def for_put(headers: Mapping[str, str], old: Stored | None) -> None:
    """
    Check the conditions of a PUT. ``old`` is the existing object.

    Raises PreconditionFailed, or Invalid for a condition that PUT does not support.
    """
    none_match = headers.get("if-none-match")
    if none_match is not None:
        if "*" not in split_tags(none_match):
            raise Invalid("If-None-Match only supports *")
        if old is not None:
            raise PreconditionFailed(f"the object {old.name} exists already")
    _must_be(old, headers)


def for_delete(headers: Mapping[str, str], old: Stored | None) -> None:
    """Check the conditions of a DELETE. Raises PreconditionFailed."""
    if old is not None:
        _must_be(old, headers)


def byte_range(stored: Stored, headers: Mapping[str, str]) -> tuple[int, int] | None:
    """
    Return the requested range as (first byte, last byte + 1). It is empty if the object has no requested byte (416).

    None means the whole object: the request has no valid Range header, or one with several ranges.
    """
    parsed = _RANGE.fullmatch(headers.get("range", ""))
    if parsed is None or ("if-range" in headers and not matches_tag(headers["if-range"], stored.etag)):
        return None
    first, last = parsed.groups()
    if not first:
        return (max(stored.size - int(last), 0), stored.size) if last else None
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last) + 1, stored.size) if last else stored.size


def _must_be(stored: Stored | None, headers: Mapping[str, str]) -> None:
    tags = headers.get("if-match")
    if tags is not None and (stored is None or not matches_tag(tags, stored.etag)):
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
