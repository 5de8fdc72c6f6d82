"""
Tokens: random, kept as hashes, revocable. What was seen lately is answered from memory.

A revocation is heard at once in the process that made it and, on PostgreSQL, in all others by its ring; what is
remembered lives five seconds at most, so that a lost ring does little harm.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from stoker.model.errors import Unauthorized
from stoker.model.principal import Principal
from stoker.store import identity
from stoker.store.bell import TOKENS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx

_REMEMBERED_SECONDS = 5.0
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Issued:
    token: str
    principal: Principal
    issued_at: datetime


class Tokens:
    def __init__(self, store: Store, hours: int) -> None:
        self._store = store
        self._life = timedelta(hours=hours)
        self._lock = threading.Lock()
        #: Hash → (until when by the monotonic clock, who).
        self._seen: dict[str, tuple[float, Principal]] = {}
        store.bell.listen(self._on_ring)

    def issue(self, tx: Tx, user_id: str, project_id: str | None, expires_at: datetime | None = None) -> Issued:
        """``expires_at``: no longer than that, as a token got by a token."""
        token = secrets.token_urlsafe(32)
        until = min(expires_at or datetime.max.replace(tzinfo=UTC), tx.now + self._life)
        identity.add_token(tx, _hash(token), user_id=user_id, project_id=project_id, issued_at=tx.now, expires_at=until)
        identity.drop_expired_tokens(tx, tx.now)
        return Issued(token, _principal(tx, user_id, project_id, until), tx.now)

    def known(self, token: str) -> Principal | None:
        """Without I/O; None: look with ``validate``."""
        found = self._seen.get(_hash(token))
        if found is None or found[0] < time.monotonic() or found[1].expires_at <= datetime.now(UTC):
            return None
        return found[1]

    def validate(self, token: str) -> Principal:
        """Raises Unauthorized, whatever is wrong with it."""
        return self.read(token).principal

    def read(self, token: str) -> Issued:
        key = _hash(token)
        until = time.monotonic() + _REMEMBERED_SECONDS
        with self._store.read() as tx:
            found = identity.token(tx, key)
            if found is None or found[3] <= tx.now:
                raise Unauthorized("The token is not valid, or no longer.")
            user_id, project_id, issued_at, expires_at = found
            principal = _principal(tx, user_id, project_id, expires_at)
        with self._lock:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[key] = (until, principal)
        return Issued(token, principal, issued_at)

    def revoke(self, token: str) -> None:
        def do(tx: Tx) -> None:
            identity.drop_token(tx, _hash(token))
            tx.ring(TOKENS_TOPIC)

        self._store.write(do)

    def _on_ring(self, topic: str, _: int) -> None:
        if topic in (TOKENS_TOPIC, "*"):
            with self._lock:
                self._seen.clear()


def _principal(tx: Tx, user_id: str, project_id: str | None, expires_at: datetime) -> Principal:
    user = identity.user(tx, user_id)
    project = identity.project(tx, project_id) if project_id else None
    if user is None or not user.enabled or (project_id and (project is None or not project.enabled)):
        raise Unauthorized("The token is not valid, or no longer.")
    return Principal(
        user_id=user.id,
        user_name=user.name,
        project_id=project_id,
        roles=identity.roles(tx, user_id, project_id) if project_id else frozenset(),
        expires_at=expires_at,
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
