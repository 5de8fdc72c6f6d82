"""Headers as text, both ways: on the wire they are bytes, here UTF-8."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

from starlette.requests import Request

from stoker.http.call import Call
from stoker.model.errors import Invalid
from stoker.model.objects import Stored, timestamp
from stoker.objects import limits, metadata
from stoker.objects.tempurl import KEY_HEADERS

_SECOND = 1_000_000
#: The last one that Swift can tell: ten digits.
_LAST_SECOND = 9_999_999_999
#: Of objects, besides their metadata.
KEPT = ("content-disposition", "content-encoding", "content-language", "cache-control", "expires", "x-robots-tag")
_SECRET = frozenset(prefix + name for prefix in (metadata.ACCOUNT, metadata.CONTAINER) for name in KEY_HEADERS)


def said(request: Request) -> dict[str, str]:
    """All headers by their lower-case names. Raises Invalid for those that are no UTF-8 where it matters."""
    found = {}
    for name, value in request.headers.raw:
        try:
            found[name.decode("ascii").lower()] = value.decode()
        except UnicodeDecodeError:
            raise Invalid(f"headers must be valid UTF-8; {name.decode('latin-1')} is not") from None
    return found


def wire(headers: Mapping[str, str]) -> dict[str, str]:
    """Ready for an answer, which writes Latin-1: each byte of the UTF-8 as a character."""
    return {name: value.encode().decode("latin-1") for name, value in headers.items()}


def owners(call: Call, kept: Mapping[str, str]) -> dict[str, str]:
    """Without the keys of signed URLs for those who may only read: with a key one may write."""
    if call.principal is not None and call.principal.roles & {"member", "admin"}:
        return dict(kept)
    return {name: value for name, value in kept.items() if name not in _SECRET}


def kept_of_object(headers: Mapping[str, str]) -> dict[str, str]:
    """What of a request's headers stays with the object. Raises Invalid."""
    found = {name: limits.header(name, headers[name]) for name in KEPT if headers.get(name)}
    found |= {name: value for name, value in headers.items() if name.startswith(metadata.OBJECT)}
    limits.metadata(found, metadata.OBJECT)
    return found


def delete_at(headers: Mapping[str, str], now: float) -> int | None:
    """Microseconds. Raises Invalid for what is no time to come."""
    if (after := headers.get("x-delete-after")) is not None:
        seconds = int(now) + _whole("X-Delete-After", after)
    elif (at := headers.get("x-delete-at")) is not None:
        seconds = _whole("X-Delete-At", at)
    else:
        return None
    if seconds <= now:
        raise Invalid(f"{'X-Delete-After' if after is not None else 'X-Delete-At'} in past")
    return min(seconds, _LAST_SECOND) * _SECOND


def of_object(stored: Stored) -> dict[str, str]:
    found = {
        "Content-Type": stored.content_type,
        "ETag": stored.etag,
        "Last-Modified": http_time(stored.modified_at),
        "X-Timestamp": timestamp(stored.modified_at),
        "Accept-Ranges": "bytes",
        **stored.headers,
    }
    if stored.delete_at is not None:
        found["X-Delete-At"] = str(stored.delete_at // _SECOND)
    if stored.version is not None:
        found["X-Object-Version-Id"] = stored.version
    return found


def http_time(moment: int) -> str:
    """RFC 1123, rounded up: what was changed later in that second is not taken for unchanged."""
    return format_datetime(datetime.fromtimestamp(-(-moment // _SECOND), UTC), usegmt=True)


def iso_time(moment: int) -> str:
    return datetime.fromtimestamp(moment // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{moment % _SECOND:06}"


def _whole(name: str, value: str) -> int:
    text = value.strip()
    if not (text.isascii() and text.isdigit()):
        raise Invalid(f"Non-integer {name}: {value!r:.100}")
    return int(text) if len(text) <= 10 else _LAST_SECOND
