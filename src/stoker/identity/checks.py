"""How a face learns who asks, whoever keeps the users: Stoker itself or a Keystone."""

from __future__ import annotations

from typing import Protocol

from stoker.identity import ec2
from stoker.model.principal import Principal


class TokenCheck(Protocol):
    def known(self, token: str) -> Principal | None:
        """Without I/O; None: look with ``validate``."""

    def validate(self, token: str) -> Principal:
        """Raises Unauthorized, whatever is wrong with it; Unavailable when there is nobody to tell."""
        ...


class KeyCheck(Protocol):
    def stands_for(self, request: ec2.Request) -> str | None:
        """The id of the resource whose key signed it, without a look into the store: it may be gone."""

    def authenticate(self, request: ec2.Request) -> Principal:
        """Whose request it is. Raises Unauthorized, Unavailable."""
        ...
