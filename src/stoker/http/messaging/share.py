"""/messaging/v2/queues/{queue}/share: signed URLs that give access to a queue without a token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from stoker.http import params
from stoker.http.messaging import queue_params
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import limits, signed_urls
from stoker.model.errors import Invalid

_PATHS = ("messages", "claims", "subscriptions", "stats")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_KNOWN = ("paths", "methods", "expires")


def create(request: RequestContext) -> Response:
    """
    Return a signed URL for paths and methods of the queue, by default for GET of its messages.

    Raises Invalid or WriteRefused.
    """
    said = params.body(request)
    if unknown := [name for name in said if name not in _KNOWN]:
        raise Invalid(f"unknown keys: {', '.join(sorted(unknown)):.200}; use {', '.join(_KNOWN)}")
    paths = _some(said.get("paths"), "paths", _PATHS) or ["messages"]
    methods = _some(said.get("methods"), "methods", _METHODS) or ["GET"]
    now = datetime.now(UTC)
    expires = _expires(said.get("expires"), now)
    base = queue_params.base(request)
    with request.app.store.read() as tx:
        queue_params.queue(request, tx)  # raises WriteRefused for a queue for which a signed URL would be useless
    made = request.app.signed_urls.sign(request.project, [f"{base}/{each}" for each in paths], methods, expires)
    return Response(200, made.to_json())


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
        raise Invalid(f"expires must be in the future, not {said!r:.100}")
    return found
