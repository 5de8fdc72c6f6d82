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

from stoker.identity import stack_users
from stoker.model.errors import Unauthorized
from stoker.model.principal import Principal, Token
from stoker.store import application_credentials, identity, tokens
from stoker.store.bell import TOKENS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx

_REMEMBERED_SECONDS = 5.0
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Issued:
    token: str
    principal: Principal
    row: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A token to be made. ``expires_at``: no longer than that, as a token got by a token."""

    user_id: str
    project_id: str | None
    methods: tuple[str, ...]
    expires_at: datetime | None = None
    application_credential_id: str | None = None


class Tokens:
    def __init__(self, store: Store, hours: int) -> None:
        self._store = store
        self._life = timedelta(hours=hours)
        self._lock = threading.Lock()
        #: Hash → (until when by the monotonic clock, who).
        self._seen: dict[str, tuple[float, Principal]] = {}
        store.bell.listen(self._on_ring)

    def issue(self, tx: Tx, wanted: Wanted) -> Issued:
        token = secrets.token_hex(32)
        until = min(wanted.expires_at or datetime.max.replace(tzinfo=UTC), tx.now + self._life)
        made = Token(
            user_id=wanted.user_id,
            project_id=wanted.project_id,
            issued_at=tx.now,
            expires_at=until,
            application_credential_id=wanted.application_credential_id,
            methods=wanted.methods,
        )
        tokens.add(tx, _hash(token), made)
        tokens.drop_expired(tx, tx.now)
        return Issued(token, _principal(tx, made), made)

    def of_project(self, project_id: str) -> str | None:
        """A member's, for Stoker's own calls of services that trust its identity; None: the project has no member."""

        def do(tx: Tx) -> str | None:
            user_id = identity.member_of(tx, project_id)
            if user_id is None:
                return None
            return self.issue(tx, Wanted(user_id=user_id, project_id=project_id, methods=("password",))).token

        return self._store.write(do)

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
            found = tokens.find(tx, key)
            if found is None or found.expires_at <= tx.now:
                raise Unauthorized("The token is not valid, or no longer.")
            principal = _principal(tx, found)
        with self._lock:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[key] = (until, principal)
        return Issued(token, principal, found)

    def revoke(self, token: str) -> None:
        def do(tx: Tx) -> None:
            tokens.drop(tx, _hash(token))
            tx.ring(TOKENS_TOPIC)

        self._store.write(do)

    def _on_ring(self, topic: str, _: int) -> None:
        if topic in (TOKENS_TOPIC, "*"):
            with self._lock:
                self._seen.clear()


def _principal(tx: Tx, token: Token) -> Principal:
    user = identity.user(tx, token.user_id)
    if user is None:
        return _stack_user(tx, token)
    project = identity.project(tx, token.project_id) if token.project_id else None
    if not user.enabled or (token.project_id and (project is None or not project.enabled)):
        raise Unauthorized("The token is not valid, or no longer.")
    roles = identity.roles(tx, user.id, token.project_id) if token.project_id else frozenset[str]()
    restricted = False
    if token.application_credential_id is not None:
        credential = application_credentials.find(tx, token.application_credential_id)
        if credential is None or (credential.expires_at is not None and credential.expires_at <= tx.now):
            raise Unauthorized("The token is not valid, or no longer.")
        roles, restricted = roles & frozenset(credential.roles), not credential.unrestricted
    return Principal(
        user_id=user.id,
        user_name=user.name,
        project_id=token.project_id,
        roles=roles,
        expires_at=token.expires_at,
        restricted=restricted,
    )


def _stack_user(tx: Tx, token: Token) -> Principal:
    """Its token ends with its resource."""
    user = stack_users.find(tx, token.user_id)
    if user is None or not user.project.enabled or token.project_id != user.project.id:
        raise Unauthorized("The token is not valid, or no longer.")
    return Principal(
        user_id=user.id,
        user_name=user.name,
        project_id=user.project.id,
        roles=frozenset((stack_users.ROLE,)),
        expires_at=token.expires_at,
        resource_id=user.resource_id,
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
