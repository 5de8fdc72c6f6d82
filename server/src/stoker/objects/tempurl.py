"""
Signed URLs: each permits one method on one object, or on all objects whose names share a prefix, for a limited time.

The signature is Swift's. It covers the method, the time in Unix seconds and the path from ``/v1/`` on, one per line.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import hmac
import ipaddress
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
#: A URL signed for one of these methods also permits HEAD.
_MAY_LOOK = ("HEAD", "GET", "POST", "PUT")
#: The headers with the keys of accounts and containers: two, so that one key can change while URLs of the other stay
#: valid.
KEY_HEADERS = ("temp-url-key", "temp-url-key-2")
_BY_LENGTH = {40: "sha1", 64: "sha256", 128: "sha512"}
_TIMES = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
#: Expiry of URLs that Stoker signs permanently; the same as Heat's: the largest 32-bit time, less a minute.
FOREVER = 2**31 - 61
#: In Unix seconds: the end of the year 9999, the last time that date formats can express.
_LAST_SECOND = 253_402_300_799


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """The signature parameters of a URL."""

    signature: str
    digest: str
    expires: int
    prefix: str | None = None
    ip_range: str | None = None


def path_of(account: str, container: str, name: str) -> str:
    """The path that the signature covers: decoded, from ``/v1/`` on."""
    return f"/v1/AUTH_{account}/{container}/{name}"


def sign(key: str, method: str, path: str, expires: int, *, digest: str = "sha256", ip_range: str | None = None) -> str:
    """
    The signature in hexadecimal.

    ``path`` is a path of ``path_of``, or ``prefix:`` and the beginning of such a path for all objects whose names begin
    so. ``expires`` is in Unix seconds.
    """
    lines = [f"ip={ip_range}"] if ip_range else []
    text = "\n".join([*lines, method, str(expires), path])
    return hmac.new(key.encode(), text.encode(), digest).hexdigest()


def url(root: str, key: str, method: str, account: str, container: str, name: str, expires: int) -> str:
    """A complete signed URL. ``root``: the URL of the object store without ``/v1``."""
    return url_of(root, key, method, path_of(account, container, name), expires)


def url_of(root: str, key: str, method: str, path: str, expires: int) -> str:
    """Like ``url``, but for any account. ``path`` is decoded and begins with ``/v1/``."""
    query = urlencode({"temp_url_sig": sign(key, method, path, expires), "temp_url_expires": expires})
    return f"{root}{quote(path)}?{query}"


def read(query: Mapping[str, str]) -> Signed | None:
    """The signature parameters of a query; None if the signature or the time is malformed."""
    parsed = _digest(query.get("temp_url_sig", ""))
    expires = _expires(query.get("temp_url_expires", ""))
    if parsed is None or expires is None:
        return None
    digest, signature = parsed
    return Signed(
        signature=signature,
        digest=digest,
        expires=expires,
        prefix=query.get("temp_url_prefix"),
        ip_range=query.get("temp_url_ip_range") or None,
    )


def allows(signed: Signed, method: str, name: str, paths: Iterable[str], keys: Iterable[str], *, now: float) -> bool:
    """
    Whether one of ``keys`` signed the URL for this method and object, and the URL has not expired.

    ``paths``: the accepted paths of the object's container, with a trailing slash. ``is_address_allowed`` checks the
    client's address.
    """
    if signed.expires < now or method not in METHODS:
        return False
    if signed.prefix is not None and not name.startswith(signed.prefix):
        return False
    methods = _MAY_LOOK if method == "HEAD" else (method,)
    allowed = False
    for path in paths:
        whole = f"{path}{name}" if signed.prefix is None else f"prefix:{path}{signed.prefix}"
        for key in keys:
            for permitted in methods:
                right = sign(key, permitted, whole, signed.expires, digest=signed.digest, ip_range=signed.ip_range)
                allowed |= hmac.compare_digest(right, signed.signature)
    return allowed


def is_address_allowed(signed: Signed, address: str) -> bool:
    """Whether the client's address is in the URL's address range, if the URL has one."""
    if signed.ip_range is None:
        return True
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(signed.ip_range)
    except ValueError:
        return False


def _digest(value: str) -> tuple[str, str] | None:
    """Split into the digest's name and the signature in lower-case hexadecimal."""
    name, colon, text = value.partition(":")
    if colon:
        if name not in _BY_LENGTH.values() or not _BASE64.fullmatch(text):
            return None
        bare = text.rstrip("=").replace("+", "-").replace("/", "_")
        try:
            raw = base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
        except (binascii.Error, ValueError):
            return None
        return name, raw.hex()
    if not re.fullmatch(r"[0-9a-fA-F]+", value) or len(value) not in _BY_LENGTH:
        return None
    return _BY_LENGTH[len(value)], value.lower()


def _expires(value: str) -> int | None:
    """Parse a time to Unix seconds; None for an invalid time, and for 0."""
    if value.isascii() and value.isdigit():
        seconds = int(value) if len(value) <= 12 else 0
        return seconds if 0 < seconds <= _LAST_SECOND else None
    for form in _TIMES:
        try:
            return calendar.timegm(time.strptime(value, form)) or None
        except ValueError:
            continue
    return None
