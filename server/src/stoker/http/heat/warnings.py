"""Warnings about accepted requests, in HTTP's Warning header."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from stoker.http.request import RequestContext

#: Maximum characters of one warning, and bytes of all, because clients limit the size of headers.
_LONGEST, _MOST = 500, 8000


def clock_headers(request: RequestContext) -> Mapping[str, str]:
    """Return the Warning header of answers with times of schedules or windows: while the site's time is wrong."""
    reason = request.app.health.warnings().get("clock")
    return headers([reason] if reason else [])


def headers(warnings: Sequence[str]) -> Mapping[str, str]:
    """
    Return the Warning header. Code 299 means a persistent warning without a specific code.

    JSON text serves as the quoted string, in ASCII.
    """
    values: list[str] = []
    left = _MOST
    for warning in warnings:
        value = f"299 - {json.dumps(warning[:_LONGEST])}"
        left -= len(value)
        if left >= 0:
            values.append(value)
    return {"Warning": ", ".join(values)} if values else {}
