"""Listings of accounts and containers in Swift's formats: JSON or plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.http.objects.headers import iso_time
from stoker.http.request import RequestContext, Response
from stoker.model.errors import PreconditionFailed
from stoker.model.objects import Entry, Page
from stoker.objects import limits


def page_of(request: RequestContext) -> Page:
    """Return the requested page. A limit that is no number is ignored. Raises PreconditionFailed for a large limit."""
    text, limit = request.query.get("limit", ""), limits.LISTING
    if text.isascii() and text.isdigit():
        limit = int(text) if len(text) < 10 else limits.LISTING + 1
        if limit > limits.LISTING:
            raise PreconditionFailed(f"Maximum limit is {limits.LISTING}")
    return Page(limit=limit, **{name: request.query.get(name, "") for name in ("marker", "prefix", "delimiter")})


def reply(
    request: RequestContext, entries: Sequence[Entry], names: Mapping[str, str], headers: dict[str, str]
) -> Response:
    """
    Return the listing, in JSON if the query's ``format`` asks for it, or without one the header Accept.

    ``names`` are the members of an entry in JSON, beside its name and time, with the names of the entry's fields.
    """
    form = request.query.get("format", request.raw.headers.get("accept", "")).lower()
    if "json" in form:
        content_type = {**headers, "Content-Type": "application/json; charset=utf-8"}
        return Response(200, [_serialize(entry, names) for entry in entries], content_type)
    if not entries:
        return Response(204, headers=headers)
    return Response(200, "".join(f"{entry.name}\n" for entry in entries).encode(), headers)


def _serialize(entry: Entry, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry; one for several names is their common prefix."""
    if entry.folder:
        return {"subdir": entry.name}
    members = {member: getattr(entry, field) for member, field in names.items()}
    return {"name": entry.name, **members, "last_modified": iso_time(entry.modified_at)}
