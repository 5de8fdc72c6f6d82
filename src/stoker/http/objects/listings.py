"""Listings of accounts and containers in Swift's formats: JSON, XML or plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from xml.sax.saxutils import escape, quoteattr

import msgspec
from msgspec import UNSET, Meta

from stoker.http.fields import Absent, Answer, Count, Query
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


class ListingQuery(Query):
    limit: Annotated[str, Meta(description=f"Maximum entries, at most {limits.LISTING}; other texts are ignored")] = ""
    marker: Annotated[str, Meta(description="The name after which the page begins")] = ""
    end_marker: Annotated[str, Meta(description="The name before which the page ends")] = ""
    prefix: str = ""
    delimiter: Annotated[str, Meta(description="Names with the same part up to it are one entry `subdir`")] = ""
    path: str | None = None
    reverse: str = ""
    format: Annotated[str | None, Meta(description="json, xml or plain; by default as the header Accept prefers")] = (
        None
    )
    versions: Annotated[str | None, Meta(description="All versions of the objects of a container")] = None
    version_marker: str = ""

    def to_page(self) -> Page:
        """Return the requested page. Raises PreconditionFailed if ``limit`` is too large."""
        limit = limits.LISTING
        if self.limit.isascii() and self.limit.isdigit():
            limit = int(self.limit) if len(self.limit) < 10 else limits.LISTING + 1
            if limit > limits.LISTING:
                raise PreconditionFailed(f"Maximum limit is {limits.LISTING}")
        return Page(
            limit=limit,
            marker=self.marker,
            end_marker=self.end_marker,
            prefix=self.prefix,
            delimiter=self.delimiter,
            path=self.path,
            reverse=self.reverse.lower() in ("true", "1", "yes", "on", "t", "y"),
            version_marker=self.version_marker,
        )


class ContainerEntry(Answer):
    """A container, or a common prefix of several."""

    name: str | Absent = UNSET
    count: Count | Absent = UNSET
    bytes: Count | Absent = UNSET
    last_modified: str | Absent = UNSET
    subdir: str | Absent = UNSET


class ObjectEntry(Answer):
    """An object, a version of one, or a common prefix of several."""

    name: str | Absent = UNSET
    hash: str | Absent = UNSET
    bytes: Count | Absent = UNSET
    content_type: str | Absent = UNSET
    last_modified: str | Absent = UNSET
    subdir: str | Absent = UNSET
    version_id: str | Absent = UNSET
    is_latest: bool | Absent = UNSET


def form(request: RequestContext, wanted: str | None) -> str:
    """
    Return the format of the response, ``json``, ``xml`` or ``plain``: that of the query, otherwise of Accept.

    Raises NotAcceptable.
    """
    if wanted is not None:
        return wanted.lower() if wanted.lower() in _FORMATS else "plain"
    accept = request.raw.headers.get("accept", "")
    if not accept.strip():
        return "plain"
    liked: list[tuple[float, int, str]] = []
    for place, part in enumerate(accept.split(",")):
        kind, *parameters = (word.strip().lower() for word in part.split(";"))
        if kind in _TYPES and (weight := _weight(parameters)) > 0:
            liked.append((-weight, place, _TYPES[kind]))
    if not liked:
        raise NotAcceptable(f"listings are text/plain, application/json or application/xml, not {accept!r:.200}")
    return min(liked)[2]


def reply(
    request: RequestContext,
    query: ListingQuery,
    name: str,
    kind: str,
    entries: Sequence[Entry],
    headers: dict[str, str],
) -> Response:
    """
    Return the listing. ``name`` is the account or container; ``kind`` is ``account``, ``container`` or ``versions``.
    """
    shape = form(request, query.format)
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
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0
    return 1


def _container(entry: Entry) -> ContainerEntry:
    if entry.folder:
        return ContainerEntry(subdir=entry.name)
    at = iso_time(entry.modified_at)
    return ContainerEntry(name=entry.name, count=entry.objects, bytes=entry.size, last_modified=at)


def _object(entry: Entry) -> ObjectEntry:
    if entry.folder:
        return ObjectEntry(subdir=entry.name)
    return ObjectEntry(
        name=entry.name,
        hash=entry.etag,
        bytes=entry.size,
        content_type=entry.content_type,
        last_modified=iso_time(entry.modified_at),
    )


def _version(entry: Entry) -> ObjectEntry:
    version = _object(entry)
    version.version_id, version.is_latest = entry.version or "null", entry.latest
    return version


_JSON: dict[str, Callable[[Entry], ContainerEntry | ObjectEntry]] = {
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
        fields = msgspec.to_builtins(_JSON[kind](entry))
        if entry.folder:
            lines.append(f"<subdir name={quoteattr(entry.name)}><name>{escape(entry.name)}</name></subdir>")
        else:
            inside = "".join(f"<{key}>{escape(_text(value))}</{key}>" for key, value in fields.items())
            lines.append(f"<{inner}>{inside}</{inner}>")
    return "\n".join([*lines, f"</{outer}>"])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
