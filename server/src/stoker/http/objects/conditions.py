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
    must_match(headers, stored)
    if (tags := headers.get("if-none-match")) is not None:
        return matches_tag(tags, stored.etag)
    since = _time(headers.get("if-modified-since", ""))
    return since is not None and stored.modified_at <= since * _SECOND


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
    must_match(headers, old)


def must_match(headers: Mapping[str, str], stored: Stored | None) -> None:
    """Raise PreconditionFailed unless the object, None if it does not exist, is one that If-Match names."""
    tags = headers.get("if-match")
    if tags is not None and (stored is None or not matches_tag(tags, stored.etag)):
        raise PreconditionFailed("A precondition for this request was not met: If-Match")


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


def _time(value: str) -> float | None:
    """Parse an HTTP date. Return None for an invalid date, because invalid conditions are ignored."""
    try:
        time = parsedate_to_datetime(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
