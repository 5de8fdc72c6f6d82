"""Who there is: logging in, and the first start."""

from __future__ import annotations

import hmac
import secrets
import uuid
from dataclasses import dataclass
from typing import Any

from stoker.identity import ec2, passwords, stack_users
from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.sealing import Sealing
from stoker.identity.stack_users import StackUser, StackUsers
from stoker.identity.tokens import Issued, Tokens, Wanted
from stoker.model.errors import Unauthorized
from stoker.model.principal import ApplicationCredential, Project, User
from stoker.store import application_credentials, identity, tokens
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
    def __init__(self, store: Store, token_hours: int, secret: bytes) -> None:
        self._store = store
        self._stack_users = StackUsers(secret)
        self.ec2 = Ec2Keys(store, Sealing(secret), self._stack_users)
        self.tokens = Tokens(store, token_hours)

    def log_in(self, user: Named, password: str, scope: Named | None) -> Issued:
        """A token for a project, or for the user's own default one. Raises Unauthorized and says no more."""
        with self._store.read() as tx:
            found = _user(tx, user)
            stack_user = stack_users.find(tx, user.id) if found is None and user.id else None
        if stack_user is not None:
            return self._log_in_stack_user(stack_user, password, scope)
        # Nobody is checked too, so that the time does not tell who exists.
        right = passwords.matches(password, found.password_hash if found else passwords.nobodys())
        if found is None or not right or not found.enabled:
            raise Unauthorized(_WRONG)
        wanted = scope or Named(id=found.default_project_id)
        return self._issue(wanted, user_id=found.id, methods=("password",))

    def _log_in_stack_user(self, user: StackUser, password: str, scope: Named | None) -> Issued:
        """Its password is made by a key, not by a person: nothing has to be slow."""
        right = hmac.compare_digest(self._stack_users.password(user.resource_id).encode(), password.encode())
        if not right or (scope is not None and user.project.id not in (scope.id, None)):
            raise Unauthorized(_WRONG)
        if scope is not None and scope.id is None and scope.name != user.project.name:
            raise Unauthorized(_WRONG)
        wanted = Wanted(user_id=user.id, project_id=user.project.id, methods=("password",))
        return self._store.write(lambda tx: self.tokens.issue(tx, wanted))

    def log_in_signed(self, request: ec2.Request) -> Issued:
        """A token for whose EC2 key signed a request. Raises Unauthorized."""
        principal = self.ec2.authenticate(request)
        wanted = Wanted(user_id=principal.user_id, project_id=principal.project_id, methods=("ec2credential",))
        return self._store.write(lambda tx: self.tokens.issue(tx, wanted))

    def log_in_program(self, credential: Named, user: Named | None, secret: str) -> Issued:
        """A token for an application credential, by its id or by its name and user. Raises Unauthorized."""
        with self._store.read() as tx:
            found = _credential(tx, credential, user)
            now = tx.now
        right = passwords.matches(secret, found.secret_hash if found else passwords.nobodys())
        if found is None or not right or (found.expires_at is not None and found.expires_at <= now):
            raise Unauthorized(_WRONG)
        return self._issue(
            Named(id=found.project_id),
            user_id=found.user_id,
            methods=("application_credential",),
            expires_at=found.expires_at,
            application_credential_id=found.id,
        )

    def rescope(self, token: str, scope: Named | None) -> Issued:
        """A token for another project, for as long as the first one lives."""
        known = self.tokens.read(token)
        if known.row.application_credential_id is not None:
            raise Unauthorized("A token got by an application credential is for its project only.")
        return self._issue(
            scope or Named(id=known.principal.project_id),
            user_id=known.principal.user_id,
            methods=tuple(dict.fromkeys((*known.row.methods, "token"))),
            expires_at=known.principal.expires_at,
        )

    def _issue(self, scope: Named, **wanted: Any) -> Issued:
        def do(tx: Tx) -> Issued:
            project = _project(tx, scope)
            if project is None and (scope.id or scope.name):
                raise Unauthorized(_WRONG)
            issued = self.tokens.issue(tx, Wanted(project_id=project.id if project else None, **wanted))
            if project is not None and not issued.principal.roles:
                raise Unauthorized(_WRONG)
            return issued

        return self._store.write(do)

    def first_start(self) -> str | None:
        """The administrator's new password, when there was no administrator yet."""
        password = secrets.token_hex(16)
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
        password = secrets.token_hex(16)
        hashed = passwords.hashed(password)

        def do(tx: Tx) -> None:
            admin = identity.user_named(tx, "admin", DOMAIN_ID)
            assert admin is not None, "the first start makes one"
            identity.set_password(tx, admin.id, hashed)
            tokens.drop_of_user(tx, admin.id)
            tx.ring(TOKENS_TOPIC)

        self._store.write(do)
        return password


def _user(tx: Tx, wanted: Named) -> User | None:
    if wanted.id:
        return identity.user(tx, wanted.id)
    return identity.user_named(tx, wanted.name, wanted.domain) if wanted.name else None


def _credential(tx: Tx, wanted: Named, user: Named | None) -> ApplicationCredential | None:
    if wanted.id:
        return application_credentials.find(tx, wanted.id)
    owner = _user(tx, user) if user else None
    return application_credentials.named(tx, owner.id, wanted.name) if owner and wanted.name else None


def _project(tx: Tx, wanted: Named) -> Project | None:
    if wanted.id:
        return identity.project(tx, wanted.id)
    return identity.project_named(tx, wanted.name, wanted.domain) if wanted.name else None
