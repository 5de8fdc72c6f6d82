"""Password hashing with scrypt. Each stored hash contains its parameters."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from stoker.model.errors import TooManyRequests

_N, _R, _P = 2**14, 8, 1
#: A hash takes 16 MiB and about 50 ms of a core. A small pool keeps logins from using all memory and all cores.
_THREADS = 2
#: Callers that may wait for a thread of the pool.
_WAITING = 10
_places = threading.BoundedSemaphore(_THREADS + _WAITING)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="stoker-password")


# A worker process does not have the threads of the supervisor, which has hashed the administrator's password.
os.register_at_fork(after_in_child=_pool.cache_clear)


def hash_password(password: str) -> str:
    """Hash a password for storage. Raises TooManyRequests, as does ``matches``."""
    salt = secrets.token_bytes(16)
    return f"scrypt${_N}${_R}${_P}${_text(salt)}${_text(_digest(password, salt, _N, _R, _P))}"


def matches(password: str, stored: str) -> bool:
    """Whether ``password`` has the stored hash. Raises TooManyRequests."""
    _, n, r, p, salt, digest = stored.split("$")
    actual = _digest(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(actual, base64.b64decode(digest))


@cache
def dummy_hash() -> str:
    """A hash for logins to accounts that do not exist, so that these take as long as other logins."""
    return hash_password(secrets.token_hex())


def _digest(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    if not _places.acquire(blocking=False):
        raise TooManyRequests("Too many logins at a time: try again in a moment", retry_after=2)
    try:
        raw = password.encode()
        return _pool().submit(hashlib.scrypt, raw, salt=salt, n=n, r=r, p=p, maxmem=64 * 1024 * 1024).result()
    finally:
        _places.release()


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
