"""Shared code of requests that write an object."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping

from stoker.http.objects import conditions, headers
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Invalid
from stoker.model.objects import timestamp
from stoker.objects import limits, object_operations
from stoker.objects.object_operations import DEFAULT_TYPE, New

_VERSION = re.compile(r"null|[0-9]{1,10}(\.[0-9]{1,9})?")
#: Headers with which an object would refer to other objects.
_SEGMENTED = ("x-object-manifest", "x-symlink-target")


def version_of(request: RequestContext) -> str | None:
    """
    Return the version that the query names, or None. Signed URLs always address the current version. Raises Invalid.
    """
    version = None if request.principal is None else request.query.get("version-id")
    if version is not None and not _VERSION.fullmatch(version):
        raise Invalid("Invalid version parameter")
    return version


def refuse_segments(request: RequestContext, fields: Mapping[str, str]) -> None:
    """Refuse segmented objects and links. Raises Invalid."""
    for name in _SEGMENTED:
        if name in fields:
            raise Invalid(f"segments and links ({name}) are not supported: send the object as a whole")
    if request.query.get("multipart-manifest") == "put":
        raise Invalid("segmented objects are not supported: send the object as a whole")


def content_type(fields: Mapping[str, str], name: str) -> str:
    """Return the declared content type, or guess it from the name. Raises Invalid."""
    declared = fields.get("content-type", "")
    if declared and fields.get("x-detect-content-type", "").lower() not in ("true", "1", "yes", "on"):
        return limits.header("content-type", declared)
    return mimetypes.guess_type(name)[0] or DEFAULT_TYPE


def store_object(
    request: RequestContext, new: New, fields: Mapping[str, str], more: Mapping[str, str] | None = None
) -> Response:
    """Store the object and return the response. ``more`` adds response headers."""
    port = request.app.objects.port
    stored = request.app.store.write(
        lambda tx: object_operations.put(
            tx, port, new, lambda old: conditions.for_put(fields, old), as_owner=request.as_owner
        )
    )
    reply_headers = {
        "ETag": stored.etag,
        "Last-Modified": headers.http_time(stored.modified_at),
        "X-Timestamp": timestamp(stored.modified_at),
        "Content-Type": "text/html; charset=UTF-8",
        **(more or {}),
    }
    if stored.version is not None:
        reply_headers["X-Object-Version-Id"] = stored.version
    return Response(201, headers=headers.wire(reply_headers))
