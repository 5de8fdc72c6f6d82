"""What all requests that write an object have in common."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping

from stoker.http.call import Call, Reply
from stoker.http.objects import conditions, headers
from stoker.model.errors import Invalid
from stoker.model.objects import timestamp
from stoker.objects import limits, writing
from stoker.objects.writing import DEFAULT_TYPE, New

_VERSION = re.compile(r"null|[0-9]{1,10}(\.[0-9]{1,9})?")
#: What would make an object stand for others.
_SEGMENTED = ("x-object-manifest", "x-symlink-target")


def version_of(call: Call) -> str | None:
    """The version that is asked for. A signed URL is for what the name means. Raises Invalid for what is no version."""
    said = None if call.principal is None else call.query.get("version-id")
    if said is not None and not _VERSION.fullmatch(said):
        raise Invalid("Invalid version parameter")
    return said


def refuse_segments(call: Call, said: Mapping[str, str]) -> None:
    """Raises Invalid."""
    for name in _SEGMENTED:
        if name in said:
            raise Invalid(f"objects are whole here, {name} cannot be kept: put it without segments or links")
    if call.query.get("multipart-manifest") == "put":
        raise Invalid("objects are whole here: put it without segments")


def content_type(said: Mapping[str, str], name: str) -> str:
    """Told, or guessed from the name. Raises Invalid."""
    told = said.get("content-type", "")
    if told and said.get("x-detect-content-type", "").lower() not in ("true", "1", "yes", "on"):
        return limits.header("content-type", told)
    return mimetypes.guess_type(name)[0] or DEFAULT_TYPE


def written(call: Call, new: New, said: Mapping[str, str], more: Mapping[str, str] | None = None) -> Reply:
    """Write it, and tell of it."""
    port = call.services.objects.port
    stored = call.services.store.write(lambda tx: writing.put(tx, port, new, lambda old: conditions.for_put(said, old)))
    shown = {
        "ETag": stored.etag,
        "Last-Modified": headers.http_time(stored.modified_at),
        "X-Timestamp": timestamp(stored.modified_at),
        "Content-Type": "text/html; charset=UTF-8",
        **(more or {}),
    }
    if stored.version is not None:
        shown["X-Object-Version-Id"] = stored.version
    return Reply(201, headers=headers.wire(shown))
