"""Security headers of all responses: browsers must not run, frame, sniff or cache them."""

from __future__ import annotations

from starlette.responses import Response

from stoker.http.errors import OBJECTS

#: Encoded once, because polls are answered a thousand times a second. Objects are documents of users: ``sandbox`` gives
#: each its own origin without scripts. ``no-referrer`` keeps signed URLs out of the Referer header of linked sites.
_OF_ALL = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"referrer-policy", b"no-referrer"),
)
#: Responses of every API can contain tokens, keys, signed URLs or documents with secrets.
_NOT_KEPT = (b"cache-control", b"no-store")


def add(response: Response, path: str) -> None:
    """Add the headers. Objects are cached as their users decide; an existing Cache-Control is kept."""
    headers = response.raw_headers
    if not path.startswith(OBJECTS) and all(name != b"cache-control" for name, _ in headers):
        headers.append(_NOT_KEPT)
    headers.extend(_OF_ALL)
