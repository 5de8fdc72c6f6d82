"""Headers as text, which are bytes on the wire, here in UTF-8; and errors in the format of Swift."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

from starlette.requests import Request

from stoker.http.api import Failure
from stoker.http.request import RequestContext, Response
from stoker.model.embedded import Stored, timestamp
from stoker.model.errors import Invalid, RequestLimitExceeded
from stoker.objects import limits
from stoker.objects.tempurl import KEY_HEADERS

_SECOND = 1_000_000
#: Headers that are stored with an object, besides its metadata.
STORED = ("content-disposition", "content-encoding", "content-language", "cache-control", "expires", "x-robots-tag")
#: Metadata that requests with a signed URL see.
_PUBLIC = limits.OBJECT_META + "public-"
#: Parts of media types with which a browser might run scripts or display misleading content.
_ACTIVE = re.compile("html|xml|svg|script|pdf|flash|css|xsl|multipart|message", re.IGNORECASE)
_SECRET = frozenset(prefix + name for prefix in (limits.ACCOUNT_META, limits.CONTAINER_META) for name in KEY_HEADERS)


def read_headers(request: Request) -> dict[str, str]:
    """Return all headers by their names in lower case. Raises Invalid if a header is not valid UTF-8."""
    fields = {}
    for name, value in request.headers.raw:
        try:
            fields[name.decode("ascii").lower()] = value.decode()
        except UnicodeDecodeError:
            raise Invalid(f"headers must be valid UTF-8; {name.decode('latin-1')} is not") from None
    return fields


def wire(headers: Mapping[str, str]) -> dict[str, str]:
    """Encode headers for a response. The framework writes Latin-1, so each byte of the UTF-8 becomes a character."""
    return {name: value.encode().decode("latin-1") for name, value in headers.items()}


def owners(request: RequestContext, stored: Mapping[str, str]) -> dict[str, str]:
    """
    Return the headers; for callers without write access, without the keys of signed URLs, which grant write access.
    """
    if not request.caller.only_reads:
        return dict(stored)
    return {name: value for name, value in stored.items() if name not in _SECRET}


def object_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that are stored with the object. Raises Invalid."""
    stored = {name: limits.header(name, headers[name]) for name in STORED if headers.get(name)}
    stored |= {name: value for name, value in headers.items() if name.startswith(limits.OBJECT_META)}
    limits.check_metadata(stored, limits.OBJECT_META)
    return stored


def of_object(stored: Stored, *, is_signed: bool) -> dict[str, str]:
    """
    Return the response headers that describe an object.

    With ``is_signed``, for a request with a signed URL, private metadata is left out, and a browser saves the object by
    default. A browser always saves active content, because objects have the same origin as the API.
    """
    own = {
        name: value
        for name, value in stored.headers.items()
        if not is_signed or not name.startswith(limits.OBJECT_META) or name.startswith(_PUBLIC)
    }
    disposition = own.get("content-disposition", "").lower()
    is_active = _ACTIVE.search(stored.content_type) and not disposition.startswith("attachment")
    if is_active or (is_signed and not disposition):
        _, separator, parameters = own.get("content-disposition", "").partition(";")
        own["content-disposition"] = f"attachment{separator}{parameters}"
    return {
        "Content-Type": stored.content_type,
        "ETag": stored.etag,
        "Last-Modified": http_time(stored.modified_at),
        "X-Timestamp": timestamp(stored.modified_at),
        "Accept-Ranges": "bytes",
        **own,
    }


def http_time(moment: int) -> str:
    """
    Format microseconds by RFC 1123, rounded up, so that a later change in the same second is not taken for unchanged.
    """
    return format_datetime(datetime.fromtimestamp(-(-moment // _SECOND), UTC), usegmt=True)


def iso_time(moment: int) -> str:
    """Format microseconds by ISO 8601, as Swift's listings do."""
    return datetime.fromtimestamp(moment // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{moment % _SECOND:06}"


def render(failure: Failure) -> Response:
    """Return the message as a line of plain text, or without a message an HTML page that explains the status."""
    status = 413 if isinstance(failure.error, RequestLimitExceeded) else failure.status
    if failure.message is None:
        page = f"<html><h1>{failure.title}</h1><p>{failure.explanation}</p></html>"
        return Response(status, page.encode(), {"Content-Type": "text/html; charset=UTF-8", **failure.headers})
    text = f"{failure.message}\n".encode(errors="replace")
    return Response(status, text, {"Content-Type": "text/plain; charset=UTF-8", **failure.headers})
