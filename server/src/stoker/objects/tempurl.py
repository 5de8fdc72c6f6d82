"""
Signed URLs: each permits one method on one object for a limited time.

The signature is Swift's, with SHA-256 or SHA-512. It covers the method, the time in Unix seconds and the path from
``/v1/`` on, one per line.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote, urlencode

METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
#: A URL signed for one of these methods also permits HEAD.
_MAY_LOOK = ("HEAD", "GET", "POST", "PUT")
#: The headers with the keys of accounts and containers: two, so that one key can change while URLs of the other stay
#: valid.
KEY_HEADERS = ("temp-url-key", "temp-url-key-2")
DIGESTS = ("sha256", "sha512")
_SIGNATURE = re.compile("[0-9a-fA-F]{64}|[0-9a-fA-F]{128}")
#: Expiry of URLs that Stoker signs permanently; the same as Heat's: the largest 32-bit time, less a minute.
FOREVER = 2**31 - 61


class Signed(NamedTuple):
    """The signature parameters of a URL."""

    signature: str
    digest: str
    expires: int


def path_of(account: str, container: str, name: str) -> str:
    """The path that the signature covers: decoded, from ``/v1/`` on."""
    return f"/v1/AUTH_{account}/{container}/{name}"


def sign(key: str, method: str, path: str, expires: int, digest: str = "sha256") -> str:
    """The signature in hexadecimal. ``path`` is a path of ``path_of``, ``expires`` is in Unix seconds."""
    return hmac.new(key.encode(), f"{method}\n{expires}\n{path}".encode(), digest).hexdigest()


def url(root: str, key: str, method: str, account: str, container: str, name: str, expires: int) -> str:
    """A complete signed URL. ``root``: the URL of the object store without ``/v1``."""
    return url_of(root, key, method, path_of(account, container, name), expires)


def url_of(root: str, key: str, method: str, path: str, expires: int) -> str:
    """Like ``url``, but for any account. ``path`` is decoded and begins with ``/v1/``."""
    query = urlencode({"temp_url_sig": sign(key, method, path, expires), "temp_url_expires": expires})
    return f"{root}{quote(path)}?{query}"


def read(query: Mapping[str, str]) -> Signed | None:
    """The signature parameters of a query; None if the signature or the time is malformed."""
    signature, expires = query.get("temp_url_sig", ""), query.get("temp_url_expires", "")
    if signature.startswith("sha512:"):  # as swiftclient writes it
        with suppress(ValueError):
            signature = base64.urlsafe_b64decode(f"{signature.removeprefix('sha512:')}==").hex()
    if not _SIGNATURE.fullmatch(signature) or not re.fullmatch("[0-9]{1,12}", expires):
        return None
    return Signed(signature.lower(), "sha256" if len(signature) == 64 else "sha512", int(expires))


def allows(signed: Signed, method: str, paths: Iterable[str], keys: Iterable[str], *, now: float) -> bool:
    """
    Whether one of ``keys`` signed the URL for this method and object, and the URL has not expired.

    ``paths``: the accepted paths of the object.
    """
    if signed.expires < now or method not in METHODS:
        return False
    allowed = False
    for path in paths:
        for key in keys:
            for permitted in _MAY_LOOK if method == "HEAD" else (method,):
                right = sign(key, permitted, path, signed.expires, signed.digest)
                allowed |= hmac.compare_digest(right, signed.signature)
    return allowed
