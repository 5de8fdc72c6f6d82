"""Listings of accounts and containers in Swift's formats: JSON, XML or plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from stoker.http.objects.headers import iso_time
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import NotAcceptable, PreconditionFailed
from stoker.model.objects import Entry, Page
from stoker.objects import limits

_TYPES = {
    "application/json": "json",
    "text/plain": "plain",
    "application/xml": "xml",
    "text/xml": "xml",
    "*/*": "plain",
    "text/*": "plain",
    "application/*": "json",
}
_FORMATS = {"json": "application/json", "xml": "application/xml", "plain": "text/plain"}


def parse_query(request: RequestContext) -> Page:
    """Return the requested page. Raises PreconditionFailed if ``limit`` is too large."""
    query = request.query
    number = query.get("limit", "")
    limit = limits.LISTING
    if number.isascii() and number.isdigit():
        limit = int(number) if len(number) < 10 else limits.LISTING + 1
        if limit > limits.LISTING:
            raise PreconditionFailed(f"Maximum limit is {limits.LISTING}")
    return Page(
        limit=limit,
        marker=query.get("marker", ""),
        end_marker=query.get("end_marker", ""),
        prefix=query.get("prefix", ""),
        delimiter=query.get("delimiter", ""),
        path=query.get("path"),
        reverse=query.get("reverse", "").lower() in ("true", "1", "yes", "on", "t", "y"),
        version_marker=query.get("version_marker", ""),
    )


def form(request: RequestContext) -> str:
    """
    Return the format of the response, ``json``, ``xml`` or ``plain``: from the query, otherwise from Accept.

    Raises NotAcceptable.
    """
    if "format" in request.query:
        said = request.query["format"].lower()
        return said if said in _FORMATS else "plain"
    accept = request.raw.headers.get("accept", "")
    if not accept.strip():
        return "plain"
    liked: list[tuple[float, int, str]] = []
    for place, part in enumerate(accept.split(",")):
        kind, *parameters = (each.strip().lower() for each in part.split(";"))
        if kind in _TYPES and (weight := _weight(parameters)) > 0:
            liked.append((-weight, place, _TYPES[kind]))
    if not liked:
        raise NotAcceptable(f"listings are text/plain, application/json or application/xml, not {accept!r:.200}")
    return min(liked)[2]


def reply(request: RequestContext, name: str, kind: str, entries: Sequence[Entry], headers: dict[str, str]) -> Response:
    """
    Return the listing. ``name`` is the account or container; ``kind`` is ``account``, ``container`` or ``versions``.
    """
    shape = form(request)
    content_type = {**headers, "Content-Type": f"{_FORMATS[shape]}; charset=utf-8"}
    if shape == "json":
        show = _JSON[kind]
        return Response(200, msgspec.json.encode([show(entry) for entry in entries]), content_type)
    if shape == "xml":
        return Response(200, _xml(name, kind, entries).encode(), content_type)
    if not entries:
        return Response(204, headers=content_type)
    return Response(200, "".join(f"{entry.name}\n" for entry in entries).encode(), content_type)


def _weight(parameters: Sequence[str]) -> float:
    for each in parameters:
        if each.startswith("q="):
            try:
                return float(each[2:])
            except ValueError:
                return 0
    return 1


def _container(entry: Entry) -> dict[str, Any]:
    if entry.folder:
        return {"subdir": entry.name}
    at = iso_time(entry.modified_at)
    return {"name": entry.name, "count": entry.objects, "bytes": entry.size, "last_modified": at}


def _object(entry: Entry) -> dict[str, Any]:
    if entry.folder:
        return {"subdir": entry.name}
    return {
        "name": entry.name,
        "hash": entry.etag,
        "bytes": entry.size,
        "content_type": entry.content_type,
        "last_modified": iso_time(entry.modified_at),
    }


def _version(entry: Entry) -> dict[str, Any]:
    return {**_object(entry), "version_id": entry.version or "null", "is_latest": entry.latest}


_JSON: dict[str, Callable[[Entry], dict[str, Any]]] = {
    "account": _container,
    "container": _object,
    "versions": _version,
}
_ELEMENTS = {
    "account": ("account", "container"),
    "container": ("container", "object"),
    "versions": ("container", "object"),
}


def _xml(name: str, kind: str, entries: Sequence[Entry]) -> str:
    outer, inner = _ELEMENTS[kind]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<{outer} name={quoteattr(name)}>"]
    for entry in entries:
        fields = _JSON[kind](entry)
        if entry.folder:
            lines.append(f"<subdir name={quoteattr(entry.name)}><name>{escape(entry.name)}</name></subdir>")
        else:
            inside = "".join(f"<{key}>{escape(_text(value))}</{key}>" for key, value in fields.items())
            lines.append(f"<{inner}>{inside}</{inner}>")
    return "\n".join([*lines, f"</{outer}>"])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
