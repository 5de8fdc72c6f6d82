"""Who there is: logging in, and the first start."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime

from stoker.identity import passwords
from stoker.identity.tokens import Issued, Tokens
from stoker.model.errors import Unauthorized
from stoker.model.principal import Project, User
from stoker.store import identity
from stoker.store.bell import TOKENS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx

#: The one domain, under the names Keystone gives its first.
DOMAIN_ID, DOMAIN_NAME = "default", "Default"
ROLES = ("admin", "member", "reader", "heat_stack_user")
_ADMIN_ROLES = ("admin", "member", "reader")
_WRONG = "The request you have made requires authentication."


@dataclass(frozen=True, slots=True)
class Named:
    """By id, or by name in a domain, as Keystone's requests have it."""

    id: str | None = None
    name: str | None = None
    domain: str = DOMAIN_ID


class Directory:
    def __init__(self, store: Store, token_hours: int) -> None:
        self._store = store
        self.tokens = Tokens(store, token_hours)

    def log_in(self, user: Named, password: str, scope: Named | None) -> Issued:
        """A token for a project, or for the user's own default one. Raises Unauthorized and says no more."""
        with self._store.read() as tx:
            found = _user(tx, user)
        # Nobody is checked too, so that the time does not tell who exists.
        right = passwords.matches(password, found.password_hash if found else passwords.nobodys())
        if found is None or not right or not found.enabled:
            raise Unauthorized(_WRONG)
        return self._issue(found.id, scope or Named(id=found.default_project_id), None)

    def rescope(self, token: str, scope: Named | None) -> Issued:
        """A token for another project, for as long as the first one lives."""
        known = self.tokens.read(token).principal
        return self._issue(known.user_id, scope or Named(id=known.project_id), known.expires_at)

    def _issue(self, user_id: str, scope: Named, expires_at: datetime | None) -> Issued:
        def do(tx: Tx) -> Issued:
            project = _project(tx, scope)
            if project is None and (scope.id or scope.name):
                raise Unauthorized(_WRONG)
            issued = self.tokens.issue(tx, user_id, project.id if project else None, expires_at)
            if project is not None and not issued.principal.roles:
                raise Unauthorized(_WRONG)
            return issued

        return self._store.write(do)

    def first_start(self) -> str | None:
        """The administrator's new password, when there was no administrator yet."""
        password = secrets.token_urlsafe(18)
        hashed = passwords.hashed(password)

        def do(tx: Tx) -> str | None:
            if identity.user_named(tx, "admin", DOMAIN_ID) is not None:
                return None
            project = Project(id=uuid.uuid4().hex, name="default", domain_id=DOMAIN_ID)
            user = User(
                id=uuid.uuid4().hex,
                name="admin",
                domain_id=DOMAIN_ID,
                password_hash=hashed,
                default_project_id=project.id,
            )
            identity.add_project(tx, project)
            identity.add_user(tx, user)
            for role in _ADMIN_ROLES:
                identity.add_role(tx, user.id, project.id, role)
            return password

        return self._store.write(do)

    def reset_admin_password(self) -> str:
        """A new password; every token of the administrator is revoked."""
        password = secrets.token_urlsafe(18)
        hashed = passwords.hashed(password)

        def do(tx: Tx) -> None:
            admin = identity.user_named(tx, "admin", DOMAIN_ID)
            assert admin is not None, "the first start makes one"
            identity.set_password(tx, admin.id, hashed)
            identity.drop_tokens_of(tx, admin.id)
            tx.ring(TOKENS_TOPIC)

        self._store.write(do)
        return password


def _user(tx: Tx, wanted: Named) -> User | None:
    if wanted.id:
        return identity.user(tx, wanted.id)
    return identity.user_named(tx, wanted.name, wanted.domain) if wanted.name else None


def _project(tx: Tx, wanted: Named) -> Project | None:
    if wanted.id:
        return identity.project(tx, wanted.id)
    return identity.project_named(tx, wanted.name, wanted.domain) if wanted.name else None
