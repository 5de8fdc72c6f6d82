"""
The keys of encryption at rest: Fernet keys, newest first. The first key encrypts; all keys decrypt.

Their source is in ``serve.site_keys``. ``rows`` says what is encrypted.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from stoker.model.errors import Unavailable

#: Seconds between two reads of the key source. After that, all processes with one key file encrypt with its first key.
RELOAD_SECONDS = 1.0

#: Returns the keys, newest first.
KeySource = Callable[[], Sequence[bytes]]


def derive_key(site_secret: bytes) -> bytes:
    """Return the key of a site without generated keys: the same for every process with this site secret."""
    return base64.urlsafe_b64encode(hmac.digest(site_secret, b"stoker sealed secrets", hashlib.sha256))


class Encryption:
    """
    Encrypts and decrypts texts. Thread-safe.

    Calls ``source`` when a key is first needed, and again at most once per second, so that a new key needs no restart.
    """

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._keys: tuple[bytes, ...] = ()
        self._fernet: MultiFernet | None = None
        self._checked = -RELOAD_SECONDS

    def encrypt(self, text: str) -> str:
        """Encrypt with the newest key. Raises Unavailable if there is no key."""
        self._reload()
        if self._fernet is None:
            raise Unavailable(_NO_KEY)
        return self._fernet.encrypt(text.encode()).decode()  # with the first key

    def decrypt(self, token: str) -> str:
        """Decrypt with any of the keys. Raises Unavailable if none of them encrypted the text."""
        self._reload()
        for attempt in range(2):
            if self._fernet is not None:
                try:
                    return self._fernet.decrypt(token.encode()).decode()
                except InvalidToken:
                    pass
            if attempt == 0:
                self._load()  # another process may have created a new key just now
        raise Unavailable(_NO_KEY)

    def rotate(self, token: str) -> str | None:
        """
        Return the text encrypted with the newest key, or None if it already is.

        Raises Unavailable if no known key decrypts the text.
        """
        self._reload()
        if not self._keys:
            raise Unavailable(_NO_KEY)
        try:
            Fernet(self._keys[0]).decrypt(token.encode())
        except InvalidToken:
            return self.encrypt(self.decrypt(token))
        return None

    def _reload(self) -> None:
        if time.monotonic() - self._checked > RELOAD_SECONDS:
            self._load()

    def _load(self) -> None:
        with self._lock:
            self._checked = time.monotonic()
            keys = tuple(self._source())
            if keys != self._keys:
                self._fernet = MultiFernet([Fernet(key) for key in keys]) if keys else None
                self._keys = keys


_NO_KEY = (
    "a secret in the database was encrypted with a key that is not known here: give the site's secret_key, its state "
    "directory, or its encryption keys"
)


def without_keys() -> Sequence[bytes]:
    """Return no keys: the key source for tools that neither read nor write secrets."""
    return ()
