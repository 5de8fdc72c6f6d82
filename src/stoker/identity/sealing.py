"""Secrets that have to be read again, kept sealed with the site's own."""

from __future__ import annotations

import base64
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken

from stoker.model.errors import Unavailable


class Sealing:
    def __init__(self, secret: bytes) -> None:
        key = hmac.digest(secret, b"stoker sealed secrets", hashlib.sha256)
        self._fernet = Fernet(base64.urlsafe_b64encode(key))

    def seal(self, plain: str) -> str:
        return self._fernet.encrypt(plain.encode()).decode()

    def open(self, sealed: str) -> str:
        """Raises Unavailable for what another site's secret has sealed."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            raise Unavailable("a secret was sealed with another site secret: put the old one back") from None
