"""
Password hashing with scrypt. Each stored hash contains its parameters.

A hash takes 16 MiB and about 50 ms of a core. Routes with hashes have a limit of their own (``http.threads``).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from functools import cache

#: Minimum number of characters of a new password.
MIN_LENGTH = 12
_N, _R, _P = 2**14, 8, 1


def hash_password(password: str) -> str:
    """Hash a password for storage."""
    salt = secrets.token_bytes(16)
    return f"scrypt${_N}${_R}${_P}${_text(salt)}${_text(_digest(password, salt, _N, _R, _P))}"


def matches(password: str, stored: str) -> bool:
    """Whether ``password`` has the stored hash."""
    _, n, r, p, salt, digest = stored.split("$")
    actual = _digest(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(actual, base64.b64decode(digest))


@cache
def dummy_hash() -> str:
    """A hash for logins to accounts that do not exist, so that these take as long as other logins."""
    return hash_password(secrets.token_hex())


def _digest(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=64 * 1024 * 1024)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
