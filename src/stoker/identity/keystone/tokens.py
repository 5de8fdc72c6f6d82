"""
Keystone's tokens. What it said lately of one is answered from memory, the bad news too.

So a revoked token is good for as long as that memory lasts (``keystone_cache_seconds``), and no longer.
"""

from __future__ import annotations

import hashlib
import threading
import time
from datetime import UTC, datetime

from stoker.identity import stack_users
from stoker.identity.keystone.client import Body, Client
from stoker.model.errors import Unauthorized, Unavailable
from stoker.model.principal import Principal
from stoker.store import stack_users as known_users
from stoker.store.open import Store

_REMEMBERED = 10_000
#: Seconds: a token just made may be unknown to one of several Keystones for a moment.
_REFUSED_SECONDS = 2.0
#: Threads that ask at once after one and the same token wait for the first of them.
_LANES = 64
_WRONG = "The token is not valid, or no longer."


class KeystoneTokens:
    def __init__(self, store: Store, client: Client, seconds: int) -> None:
        self._store = store
        self._client = client
        self._seconds = float(seconds)
        self._lock = threading.Lock()
        self._lanes = [threading.Lock() for _ in range(_LANES)]
        #: Hash → (until when by the monotonic clock, who).
        self._seen: dict[bytes, tuple[float, Principal]] = {}
        self._refused: dict[bytes, float] = {}

    def known(self, token: str) -> Principal | None:
        """Without I/O; None: look with ``validate``."""
        found = self._seen.get(_hash(token))
        if found is None or found[0] < time.monotonic() or found[1].expires_at <= datetime.now(UTC):
            return None
        return found[1]

    def validate(self, token: str) -> Principal:
        """Raises Unauthorized, whatever is wrong with it; Unavailable when Keystone does not answer."""
        key = _hash(token)
        with self._lanes[key[0] % _LANES]:
            known = self.known(token)
            if known is not None:
                return known
            if self._refused.get(key, 0.0) > time.monotonic():
                raise Unauthorized(_WRONG)
            asked = time.monotonic()
            body = self._client.token(token)
            if body is None:
                self._remember_refused(key, asked)
                raise Unauthorized(_WRONG)
            principal = self.principal(body)
            self._remember(key, asked, principal)
            return principal

    def principal(self, body: Body) -> Principal:
        """Whom Keystone speaks of. Raises Unauthorized, Unavailable."""
        try:
            user, project = body["user"], body.get("project")
            principal = Principal(
                user_id=user["id"],
                user_name=user["name"],
                project_id=project["id"] if project else None,
                roles=frozenset(role["name"].lower() for role in body.get("roles") or ()),
                expires_at=datetime.fromisoformat(body["expires_at"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Unavailable("Keystone's answer cannot be read: check the setting keystone_auth_url") from None
        return self._standing_for(principal) if stack_users.ROLE in principal.roles else principal

    def _standing_for(self, principal: Principal) -> Principal:
        """A user that Stoker made stands for its resource, in the project of that; others are who they are."""
        with self._store.read() as tx:
            found = known_users.of_user(tx, principal.user_id)
        if found is None:
            return principal
        if found.resting or principal.project_id != found.user_project_id:
            raise Unauthorized(_WRONG)
        return Principal(
            user_id=principal.user_id,
            user_name=principal.user_name,
            project_id=found.project_id,
            roles=frozenset((stack_users.ROLE,)),
            expires_at=principal.expires_at,
            resource_id=found.resource_id,
            login_project_id=principal.project_id,
        )

    def _remember(self, key: bytes, asked: float, principal: Principal) -> None:
        with self._lock:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[key] = (asked + self._seconds, principal)

    def _remember_refused(self, key: bytes, asked: float) -> None:
        with self._lock:
            self._seen.pop(key, None)
            if len(self._refused) >= _REMEMBERED:
                self._refused.clear()
            self._refused[key] = asked + _REFUSED_SECONDS


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
