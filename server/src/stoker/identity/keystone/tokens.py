"""
Keystone tokens. Validation results are cached in memory, including negative ones.

Token validation results are cached for ``keystone_cache_seconds``, so a revoked token may be accepted for that long.
"""

from __future__ import annotations

import hashlib
import threading
import time
from datetime import datetime

from stoker.identity import stack_users
from stoker.identity.keystone.client import Body, Client
from stoker.identity.tokens import ADMIN
from stoker.lru_cache import LruCache
from stoker.model.errors import Unauthorized, Unavailable
from stoker.model.principal import Principal
from stoker.store import stack_users as known_users
from stoker.store.open import Store

_REMEMBERED = 10_000
#: Seconds that a rejection is cached. Short, because one of several Keystone servers may not know a new token yet.
_REFUSED_SECONDS = 2.0
#: Number of locks. Threads that validate the same token at the same time wait for the first of them.
_LANES = 64
_WRONG = "The token is not valid, or has expired."


class KeystoneTokens:
    """Validates tokens at Keystone. ``seconds``: how long a validated token is cached."""

    def __init__(self, store: Store, client: Client, seconds: int) -> None:
        self._store = store
        self._client = client
        self._seconds = float(seconds)
        self._lanes = [threading.Lock() for _ in range(_LANES)]
        self._seen: LruCache[bytes, Principal] = LruCache(_REMEMBERED)
        self._refused: LruCache[bytes, bool] = LruCache(_REMEMBERED)

    def get_cached(self, token: str) -> Principal | None:
        """The principal of a recently validated token, without I/O; None if ``validate`` is needed."""
        return self._seen.get(_hash(token))

    def validate(self, token: str) -> Principal:
        """
        The principal of a token. Raises Unauthorized for any invalid token, Unavailable if Keystone does not answer.
        """
        key = _hash(token)
        with self._lanes[key[0] % _LANES]:
            principal = self.get_cached(token)
            if principal is not None:
                return principal
            if self._refused.get(key):
                raise Unauthorized(_WRONG)
            asked_at = time.monotonic()
            body = self._client.token(token)
            if body is None:
                self._seen.drop(key)
                self._refused.put(key, True, asked_at + _REFUSED_SECONDS)
                raise Unauthorized(_WRONG)
            principal = self.principal(body)
            seconds = min(self._seconds, (principal.expires_at - self._store.clock.now()).total_seconds())
            self._seen.put(key, principal, asked_at + seconds)
            return principal

    def principal(self, body: Body) -> Principal:
        """The principal that a token body describes. Raises Unauthorized, Unavailable."""
        try:
            user, project = body["user"], body.get("project")
            roles = frozenset(role["name"].lower() for role in body.get("roles") or ())
            principal = Principal(
                user_id=user["id"],
                user_name=user["name"],
                project_id=project["id"] if project else None,
                roles=roles,
                expires_at=datetime.fromisoformat(body["expires_at"]),
                site_admin=ADMIN in roles and _is_for_the_site(body),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Unavailable("Keystone's answer cannot be read: check the setting keystone_auth_url") from None
        return self._with_resource(principal) if stack_users.ROLE in principal.roles else principal

    def _with_resource(self, principal: Principal) -> Principal:
        """
        Replace a user that Stoker created by a principal for its resource, in the resource's project; return others
        unchanged.
        """
        with self._store.read() as tx:
            login = known_users.of_user(tx, principal.user_id)
        if login is None:
            return principal
        if login.resting or principal.project_id != login.user_project_id:
            raise Unauthorized(_WRONG)
        return Principal(
            user_id=principal.user_id,
            user_name=principal.user_name,
            project_id=login.project_id,
            roles=frozenset((stack_users.ROLE,)),
            expires_at=principal.expires_at,
            resource_id=login.resource_id,
            login_project_id=principal.project_id,
        )


def _is_for_the_site(body: Body) -> bool:
    """Whether the token is for the system, or for the project that Keystone's ``admin_project_name`` names."""
    return (body.get("system") or {}).get("all") is True or body.get("is_admin_project") is True


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
