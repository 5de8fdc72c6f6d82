"""
Stoker's own tokens: random, stored as hashes, revocable. Recently validated tokens are cached in memory.

A revocation takes effect at once in the process that executes it and, on PostgreSQL, in all others by a notification.
Cache entries expire after five seconds, so a lost notification does little harm.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from stoker.bounded_dict import BoundedDict
from stoker.identity import stack_users
from stoker.model.errors import Unauthorized
from stoker.model.ids import SITE
from stoker.model.principal import Principal, Project, Token
from stoker.store import identity
from stoker.store.notifier import TOKENS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx

_REMEMBERED_SECONDS = 5.0
_REMEMBERED = 10_000
#: In a project, this role administers the project; on the system, the whole site.
ADMIN = "admin"
_INVALID = "The token is not valid, or has expired."


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, its principal, its row in the database and its project."""

    token: str
    principal: Principal
    row: Token
    project: Project | None


class Tokens:
    """Issues, validates and revokes tokens. ``hours``: their lifetime."""

    def __init__(self, store: Store, hours: int) -> None:
        self._store = store
        self._life = timedelta(hours=hours)
        #: Hash of a token → its principal, and the end of the entry on the monotonic clock.
        self._seen: BoundedDict[str, tuple[Principal, float]] = BoundedDict(_REMEMBERED)
        store.notifier.subscribe(lambda _: self._seen.clear(), TOKENS_TOPIC)

    def issue(
        self,
        tx: Tx,
        *,
        user_id: str,
        project_id: str | None,
        methods: tuple[str, ...],
        expires_at: datetime | None = None,
        application_credential_id: str | None = None,
        system: bool = False,
        parent: str | None = None,
    ) -> Issued:
        """
        Issue a token: for a project; for the whole site, with ``system``; or for neither.

        ``expires_at`` limits its lifetime. ``parent`` is the token that requests the new one. Raises Unauthorized if
        the parent has been revoked.
        """
        parent_hash = None if parent is None else _hash(parent)
        if parent_hash is not None and identity.find_token(tx, parent_hash, for_update=True) is None:
            raise Unauthorized(_INVALID)
        token = secrets.token_hex(32)
        until = min(expires_at or datetime.max.replace(tzinfo=UTC), tx.now + self._life)
        row = Token(
            user_id=user_id,
            project_id=project_id,
            issued_at=tx.now,
            expires_at=until,
            application_credential_id=application_credential_id,
            system=system,
            parent_hash=parent_hash,
            methods=methods,
        )
        identity.add_token(tx, row, hash=_hash(token))
        identity.drop_expired_tokens(tx, tx.now)
        return Issued(token, *_resolve(tx, row))

    def of_project(self, project_id: str) -> str | None:
        """
        Issue a token of a project member, for Stoker's own requests to services that trust its identity service.

        Returns None if the project has no member.
        """

        def do(tx: Tx) -> str | None:
            user_id = identity.member_of(tx, project_id)
            if user_id is None:
                return None
            return self.issue(tx, user_id=user_id, project_id=project_id, methods=("password",)).token

        return self._store.write(do)

    def get_cached(self, token: str) -> Principal | None:
        """The principal of a recently validated token, without I/O; None if ``validate`` is needed."""
        principal, until = self._seen.get(_hash(token), (None, 0.0))
        return principal if until > time.monotonic() else None

    def validate(self, token: str) -> Principal:
        """The principal of a token. Raises Unauthorized for any invalid token."""
        return self.read(token).principal

    def read(self, token: str) -> Issued:
        """Read a token from the database and cache its principal. Raises Unauthorized."""
        key = _hash(token)
        read_at = time.monotonic()
        with self._store.read() as tx:
            row = identity.find_token(tx, key)
            if row is None or row.expires_at <= tx.now:
                raise Unauthorized(_INVALID)
            issued = Issued(token, *_resolve(tx, row))
            seconds = min(_REMEMBERED_SECONDS, (row.expires_at - tx.now).total_seconds())
        self._seen.put(key, (issued.principal, read_at + seconds))
        return issued

    def revoke(self, token: str) -> None:
        """Revoke a token and all tokens that were requested with it."""

        def do(tx: Tx) -> None:
            identity.drop_token(tx, _hash(token))
            tx.notify(TOKENS_TOPIC)

        self._store.write(do)


def _resolve(tx: Tx, token: Token) -> tuple[Principal, Token, Project | None]:
    """Return the token's principal, the token and its project. Raises Unauthorized."""
    user = identity.user(tx, token.user_id)
    if user is None:
        return _resolve_stack_user(tx, token)
    project = identity.project(tx, token.project_id) if token.project_id else None
    if not user.enabled or (token.project_id and (project is None or not project.enabled)):
        raise Unauthorized(_INVALID)
    roles, restricted = _find_roles(tx, token)
    administers = ADMIN in roles and not restricted
    principal = Principal(
        user_id=user.id,
        user_name=user.name,
        project_id=token.project_id,
        roles=roles,
        expires_at=token.expires_at,
        # An administrator of the site logs in to a project, as clouds.yaml requires, and needs no second token for the
        # site.
        site_admin=administers and (token.system or ADMIN in identity.roles(tx, user.id, SITE)),
        application_credential_id=token.application_credential_id,
        restricted=restricted,
    )
    return principal, token, project


def _resolve_stack_user(tx: Tx, token: Token) -> tuple[Principal, Token, Project | None]:
    """The same for a stack user, whose token is valid only while its resource exists."""
    user = stack_users.find(tx, token.user_id)
    if user is None or not user.project.enabled or token.project_id != user.project.id:
        raise Unauthorized(_INVALID)
    principal = Principal(
        user_id=user.id,
        user_name=user.name,
        project_id=user.project.id,
        roles=frozenset((stack_users.ROLE,)),
        expires_at=token.expires_at,
        resource_id=user.resource_id,
        run=user.run,
    )
    return principal, token, user.project


def _find_roles(tx: Tx, token: Token) -> tuple[frozenset[str], bool]:
    """
    Return the roles of a user's token, and whether an application credential restricts it.

    Raises Unauthorized if the credential has expired or no longer exists.
    """
    roles = frozenset[str]()
    if token.system:
        roles = identity.roles(tx, token.user_id, SITE)
    elif token.project_id:
        roles = identity.roles(tx, token.user_id, token.project_id)
    if token.application_credential_id is None:
        return roles, False
    credential = identity.find_credential(tx, token.application_credential_id)
    if credential is None or (credential.expires_at is not None and credential.expires_at <= tx.now):
        raise Unauthorized(_INVALID)
    return roles & frozenset(credential.roles), not credential.unrestricted


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
