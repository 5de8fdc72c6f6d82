"""Passwords are kept as scrypt hashes, which carry their own parameters."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from functools import cache

_N, _R, _P = 2**14, 8, 1


def hashed(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt${_N}${_R}${_P}${_text(salt)}${_text(_digest(password, salt, _N, _R, _P))}"


def matches(password: str, stored: str) -> bool:
    _, n, r, p, salt, digest = stored.split("$")
    found = _digest(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(digest))


@cache
def nobodys() -> str:
    """What a login of nobody is held against, so that it takes as long as anybody's."""
    return hashed(secrets.token_hex())


def _digest(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=64 * 1024 * 1024)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
