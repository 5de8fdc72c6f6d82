"""
Passwords: hashing with scrypt, and limits for failed logins.

Each stored hash contains its parameters. A hash takes 16 MiB and about 50 ms of a core. Routes with hashes have a limit
of their own (``http.threads``).

The limits slow down password guessing without locking the user out. Failures are counted for each pair of user and
address, for each address and for each user. After a number of failures, the next attempt has to wait: 1 second, then 2,
4 and so on. The wait per user is short, and it does not apply to addresses from which the user has logged in, so an
attacker elsewhere cannot lock the user out. Each process counts on its own, in bounded memory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache

import structlog

from stoker.bounded_dict import BoundedDict
from stoker.model.errors import TooManyRequests

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


_log = structlog.get_logger("stoker.identity")

#: Failures are forgotten after this many seconds without another failure.
_MEMORY_SECONDS = 900.0
#: The longest wait in seconds: for a pair or an address, and for a user.
_LONGEST, _LONGEST_FOR_USER = 900.0, 30.0
#: Failures of one user from one address before attempts have to wait.
_FREE = 5
#: Free failures of one address, and of one user, as multiples of those of a pair. Many users may share one address.
_ADDRESS_SHARE, _USER_SHARE = 10, 20
#: Maximum number of users, addresses, pairs and known logins to remember; the oldest are dropped first.
_ENTRIES = 10_000


@dataclass(slots=True)
class _Record:
    failures: int = 0
    #: Time of the last failure, by the limiter's clock.
    last: float = -math.inf
    blocked_until: float = -math.inf


class _Counter:
    def __init__(self, what: str, free: int, longest: float) -> None:
        self._what = what
        self._free = free
        self._longest = longest
        self._records: BoundedDict[Hashable, _Record] = BoundedDict(_ENTRIES)

    def wait(self, key: Hashable, now: float) -> float:
        """Seconds until the next attempt is allowed; 0 or less if it is allowed now."""
        record = self._records.get(key)
        return record.blocked_until - now if record else 0.0

    def fail(self, key: Hashable, now: float) -> None:
        record = self._records.get(key) or _Record()
        self._records.put(key, record)
        if now - max(record.last, record.blocked_until) > _MEMORY_SECONDS:
            record.failures = 0
        record.failures += 1
        record.last = now
        beyond = record.failures - self._free
        if beyond >= 0:
            seconds = min(2.0 ** min(beyond, 30), self._longest)
            record.blocked_until = now + seconds
            if beyond == 0:
                _log.warning("login.locked_out", limit=self._what, subject=key, failures=record.failures)

    def forget(self, key: Hashable) -> None:
        self._records.drop(key)


class LoginLimiter:
    """Limits failed logins. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pairs = _Counter("user at address", _FREE, _LONGEST)
        self._addresses = _Counter("address", _FREE * _ADDRESS_SHARE, _LONGEST)
        self._users = _Counter("user", _FREE * _USER_SHARE, _LONGEST_FOR_USER)
        #: Pairs (user, address) of successful logins.
        self._known: BoundedDict[tuple[str, str], bool] = BoundedDict(_ENTRIES)

    def check(self, user: str, address: str) -> None:
        """Raises TooManyRequests while ``user`` has to wait at ``address``."""
        now = self._clock()
        with self._lock:
            waits = [self._pairs.wait((user, address), now), self._addresses.wait(address, now)]
            if not self._known.get((user, address)):
                waits.append(self._users.wait(user, now))
        if max(waits) > 0:
            seconds = math.ceil(max(waits))
            raise TooManyRequests(f"Too many logins have failed: try again in {seconds} seconds", seconds)

    def record_failure(self, user: str, address: str) -> None:
        """Count a failed login for the pair, the address and the user."""
        now = self._clock()
        with self._lock:
            self._pairs.fail((user, address), now)
            self._addresses.fail(address, now)
            self._users.fail(user, now)

    def record_success(self, user: str, address: str) -> None:
        """
        Clear the failures of the pair. The address keeps its failures, because an attacker there may own an account,
        too.
        """
        with self._lock:
            self._pairs.forget((user, address))
            self._known.put((user, address), True)
