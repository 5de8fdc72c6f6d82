"""Interfaces through which the APIs authenticate requests, with Stoker's own users or with Keystone."""

from __future__ import annotations

from typing import Protocol

from stoker.identity import ec2
from stoker.model.principal import Principal


class TokenCheck(Protocol):
    """Validates tokens. Implemented by ``identity.tokens.Tokens`` and ``identity.keystone.tokens.KeystoneTokens``."""

    def get_cached(self, token: str) -> Principal | None:
        """The principal of a recently validated token, without I/O; None if ``validate`` is needed."""

    def validate(self, token: str) -> Principal:
        """
        The principal of a token. Raises Unauthorized for any invalid token, Unavailable if Keystone is unreachable.
        """
        ...


class KeyCheck(Protocol):
    """Authenticates requests signed with an EC2 key."""

    def authenticate(self, request: ec2.Request) -> Principal:
        """The principal that signed the request. Raises Unauthorized, Unavailable."""
        ...
