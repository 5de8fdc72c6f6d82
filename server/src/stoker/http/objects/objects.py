"""Objects: write, read in whole or in part, change metadata, delete."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from stoker.http.api import Failure
from stoker.http.contracts import operation
from stoker.http.objects import headers
from stoker.http.objects.access import account_of
from stoker.http.objects.headers import render
from stoker.http.request import RequestContext, Response, matches_tag
from stoker.model.embedded import Stored, check_read, timestamp
from stoker.model.errors import EntityNotFound, Invalid, PreconditionFailed, Unprocessable
from stoker.objects import limits, operations
from stoker.objects.operations import DEFAULT_TYPE
from stoker.store.tx import Tx

#: Headers of features that Stoker does not have. Without the feature, the object would have the wrong content, or stay
#: longer than its owner wants.
_UNSUPPORTED = {
    "x-object-manifest": "segments",
    "x-symlink-target": "links",
    "x-copy-from": "copies",
    **dict.fromkeys(("x-delete-at", "x-delete-after"), "expiry"),
    **dict.fromkeys(("if-match", "if-none-match", "if-unmodified-since"), "conditions of writes"),
}
_SECOND = 1_000_000
_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.ASCII | re.IGNORECASE)


@operation(201)
def put(request: RequestContext) -> Response:
    """Store an object. Raises EntityNotFound, Invalid, Unprocessable or WriteRefused."""
    fields = _read_headers(request)
    declared = fields.get("etag", "").strip('"').lower()
    if declared and declared != hashlib.md5(request.body, usedforsecurity=False).hexdigest():
        raise Unprocessable("the body's MD5 differs from the ETag")
    kind, kept = _content_type(fields, request.path["object"]), headers.object_headers(fields)
    stored = request.write(
        lambda tx: operations.put(
            tx,
            *_place(request),
            request.body,
            content_type=kind,
            headers=kept,
            callbacks=request.app.object_callbacks,
            as_owner=request.caller.as_owner,
        )
    )
    reply_headers = {
        "ETag": stored.etag,
        "Last-Modified": headers.http_time(stored.modified_at),
        "X-Timestamp": timestamp(stored.modified_at),
        "Content-Type": "text/html; charset=UTF-8",
    }
    return Response(201, headers=reply_headers)


@operation(200)
def get(request: RequestContext, tx: Tx) -> Response:
    """Return an object or a range of it. Raises EntityNotFound, PreconditionFailed or Forbidden."""
    stored, data = operations.read(tx, *_place(request))
    check_read(stored, as_owner=request.caller.as_owner)
    return _answer(request, stored, data)


@operation(200)
def head(request: RequestContext, tx: Tx) -> Response:
    return _answer(request, operations.find(tx, *_place(request)), None)


@operation(202)
def post(request: RequestContext, tx: Tx) -> None:
    """Replace the metadata. Headers that the request omits are removed, except for the content type."""
    fields, (account, container, name) = _read_headers(request), _place(request)
    stored = headers.object_headers(fields)
    operations.lock(tx, account, container, as_owner=request.caller.as_owner)
    old = operations.find(tx, account, container, name)
    kind = _content_type(fields, name) if fields.get("content-type") else old.content_type
    operations.change(tx, old, headers=stored, content_type=kind)


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete an object. Raises EntityNotFound, or Invalid for a condition."""
    _read_headers(request)
    account, container, name = _place(request)
    if not operations.delete(tx, account, container, name, as_owner=request.caller.as_owner):
        raise EntityNotFound.of("Object", name)


def _read_headers(request: RequestContext) -> dict[str, str]:
    """Return the headers of a write. Raises Invalid for headers and queries of features that Stoker does not have."""
    fields = headers.read_headers(request.raw)
    for name, feature in _UNSUPPORTED.items():
        if name in fields:
            raise Invalid(f"the header {name} is not supported. Stoker's objects have no {feature}")
    if request.query.get("multipart-manifest") == "put":
        raise Invalid("segmented objects are not supported: send the object as a whole")
    return fields


def _content_type(fields: Mapping[str, str], name: str) -> str:
    """Return the declared content type, or guess it from the name. Raises Invalid."""
    if declared := fields.get("content-type"):
        return limits.header("content-type", declared)
    return mimetypes.guess_type(name)[0] or DEFAULT_TYPE


def _answer(request: RequestContext, stored: Stored, data: bytes | None) -> Response:
    """Return the object, the requested range, or 304. ``data`` None: only the headers."""
    reply_headers = headers.of_object(stored, is_signed=request.caller.principal is None)
    fields = headers.read_headers(request.raw)
    if _is_unchanged(stored, fields):
        return Response(
            304, headers=headers.wire({name: value for name, value in reply_headers.items() if name != "Content-Type"})
        )
    if data is None:
        return Response(200, None, headers.wire({**reply_headers, "Content-Length": str(stored.size)}))
    part = _byte_range(stored, fields)
    if part is None:
        return Response(200, data, headers.wire(reply_headers))
    start, end = part
    if start >= end:
        whole = {"Content-Range": f"bytes */{stored.size}"}
        return render(Failure(416, "RangeNotSatisfiable", headers=whole))
    reply_headers["Content-Range"] = f"bytes {start}-{end - 1}/{stored.size}"
    return Response(206, data[start:end], headers.wire(reply_headers))


def _place(request: RequestContext) -> tuple[str, str, str]:
    return account_of(request.path), request.path["container"], request.path["object"]


def _is_unchanged(stored: Stored, fields: Mapping[str, str]) -> bool:
    """Return whether the client already has the current object (304). Raises PreconditionFailed."""
    if (tags := fields.get("if-match")) is not None and not matches_tag(tags, stored.etag):
        raise PreconditionFailed("A precondition for this request was not met: If-Match")
    if (tags := fields.get("if-none-match")) is not None:
        return matches_tag(tags, stored.etag)
    since = _time(fields.get("if-modified-since", ""))
    return since is not None and stored.modified_at <= since * _SECOND


def _byte_range(stored: Stored, fields: Mapping[str, str]) -> tuple[int, int] | None:
    """
    Return the requested range as (first byte, last byte + 1). It is empty if the object has no requested byte (416).

    None means the whole object: the request has no valid Range header, or one with several ranges.
    """
    parsed = _RANGE.fullmatch(fields.get("range", ""))
    if parsed is None or ("if-range" in fields and not matches_tag(fields["if-range"], stored.etag)):
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
