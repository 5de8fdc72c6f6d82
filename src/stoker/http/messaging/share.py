"""/messaging/v2/queues/{queue}/share: leave to use a queue without a token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.messaging import asking
from stoker.messaging import limits, signed_urls
from stoker.model.errors import Invalid

_PATHS = ("messages", "claims", "subscriptions", "stats")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_KNOWN = ("paths", "methods", "expires")


def create(call: Call) -> Reply:
    said = reading.body(call)
    if unknown := [name for name in said if name not in _KNOWN]:
        raise Invalid(f"unknown keys: {', '.join(sorted(unknown)):.200}; known are {', '.join(_KNOWN)}")
    paths = _some(said.get("paths"), "paths", _PATHS) or ["messages"]
    methods = _some(said.get("methods"), "methods", _METHODS) or ["GET"]
    now = datetime.now(UTC)
    expires = _expires(said.get("expires"), now)
    base = asking.base(call)
    made = call.services.signed_urls.sign(call.project, [f"{base}/{each}" for each in paths], methods, expires)
    return Reply(200, made.to_json())


def _some(said: Any, name: str, known: tuple[str, ...]) -> list[str] | None:
    if said is None:
        return None
    if not isinstance(said, list) or not all(each in known for each in said):
        raise Invalid(f"{name} must be a list of some of {', '.join(known)}")
    return list(dict.fromkeys(said))


def _expires(said: Any, now: datetime) -> datetime:
    if said is None:
        return now + timedelta(seconds=limits.SIGNED_URL_LIFE)
    if not isinstance(said, str):
        raise Invalid(f"expires must be a time like 2030-01-31T23:59:59, not {said!r:.100}")
    found = signed_urls.moment(said)
    if found <= now:
        raise Invalid(f"expires must be a time to come, not {said!r:.100}")
    return found
