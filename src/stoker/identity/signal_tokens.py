"""
Tokens for one thing only: to signal one resource.

They are made of the resource's id and the site's secret, so nothing is kept, and they live as long as the resource.
"""

from __future__ import annotations

import hashlib
import hmac
import re

_SHAPE = re.compile(r"signal\.(?P<resource>[0-9a-f-]{36})\.(?P<proof>[0-9a-f]{64})")


class SignalTokens:
    _use = b"stoker signal tokens"

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, self._use, hashlib.sha256)

    def token(self, resource_id: str) -> str:
        return f"signal.{resource_id}.{self._proof(resource_id)}"

    def resource_of(self, token: str) -> str | None:
        """The id of the resource that may be signalled with it; None for what is no such token."""
        found = _SHAPE.fullmatch(token)
        if found is None or not hmac.compare_digest(found["proof"], self._proof(found["resource"])):
            return None
        return found["resource"]

    def _proof(self, resource_id: str) -> str:
        return hmac.new(self._secret, resource_id.encode(), hashlib.sha256).hexdigest()


class CallTokens(SignalTokens):
    """For less: to say that there may be a result in the resource's queue. Zaqar shows them to its users."""

    _use = b"stoker call tokens"
