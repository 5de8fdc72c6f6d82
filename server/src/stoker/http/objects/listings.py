"""Listings of accounts and containers in Swift's formats: JSON or plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.http.objects.headers import iso_time
from stoker.http.request import RequestContext, Response
from stoker.model.errors import NotAcceptable, PreconditionFailed
from stoker.model.objects import Entry, Page
from stoker.objects import limits

_JSON, _PLAIN = "application/json", "text/plain"
_TYPES = {_JSON: _JSON, _PLAIN: _PLAIN, "*/*": _PLAIN, "text/*": _PLAIN, "application/*": _JSON}


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
    Return the listing. Raises NotAcceptable.

    ``names`` are the members of an entry in JSON, beside its name and time, with the names of the entry's fields.
    """
    media_type = _media_type(request, request.query.get("format"))
    content_type = {**headers, "Content-Type": f"{media_type}; charset=utf-8"}
    if media_type == _JSON:
        return Response(200, [_serialize(entry, names) for entry in entries], content_type)
    if not entries:
        return Response(204, headers=content_type)
    return Response(200, "".join(f"{entry.name}\n" for entry in entries).encode(), content_type)


def _serialize(entry: Entry, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry; one for several names is their common prefix."""
    if entry.folder:
        return {"subdir": entry.name}
    members = {member: getattr(entry, field) for member, field in names.items()}
    return {"name": entry.name, **members, "last_modified": iso_time(entry.modified_at)}


def _media_type(request: RequestContext, wanted: str | None) -> str:
    """Return the media type of the response: that of the query's ``format``, otherwise of Accept."""
    if wanted is not None:
        return _JSON if wanted.lower() == "json" else _PLAIN
    accept = request.raw.headers.get("accept", "")
    if not accept.strip():
        return _PLAIN
    liked: list[tuple[float, int, str]] = []
    for place, part in enumerate(accept.split(",")):
        kind, *parameters = (word.strip().lower() for word in part.split(";"))
        if kind in _TYPES and (weight := _weight(parameters)) > 0:
            liked.append((-weight, place, _TYPES[kind]))
    if not liked:
        raise NotAcceptable(f"listings are text/plain or application/json, not {accept!r:.200}")
    return min(liked)[2]


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0
    return 1
