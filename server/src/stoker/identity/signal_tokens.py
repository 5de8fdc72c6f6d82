"""
Tokens that permit one operation: to signal one resource.

A token derives from the resource's id and the site secret, so Stoker stores none, and a token is valid as long as its
resource exists.
"""

from __future__ import annotations

import hashlib
import hmac
import re

_SHAPE = re.compile(r"signal\.(?P<resource>[0-9a-f-]{36})\.(?P<proof>[0-9a-f]{64})")


class SignalTokens:
    """Creates and verifies signal tokens. ``secret`` is the site secret."""

    _use = b"stoker signal tokens"

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, self._use, hashlib.sha256)

    def token(self, resource_id: str) -> str:
        """The token for a resource."""
        return f"signal.{resource_id}.{self._proof(resource_id)}"

    def resource_of(self, token: str) -> str | None:
        """The id of the resource that the token may signal; None if the token is invalid."""
        match = _SHAPE.fullmatch(token)
        if match is None or not hmac.compare_digest(match["proof"], self._proof(match["resource"])):
            return None
        return match["resource"]

    def _proof(self, resource_id: str) -> str:
        return hmac.new(self._secret, resource_id.encode(), hashlib.sha256).hexdigest()


class CallTokens(SignalTokens):
    """
    Tokens with fewer rights: they only announce a possible result in the resource's queue. Zaqar shows them to its
    users.
    """

    _use = b"stoker call tokens"
