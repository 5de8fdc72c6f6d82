"""Stoker's own identity service: logins, and the administrator of the first start."""

from __future__ import annotations

import hmac
import secrets
import uuid
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.identity import passwords, stack_users
from stoker.identity.passwords import LoginLimiter
from stoker.identity.stack_users import Ec2Keys, StackUser, StackUsers
from stoker.identity.tokens import ADMIN, Issued, Tokens
from stoker.model.errors import Unauthorized
from stoker.model.ids import SITE
from stoker.model.principal import ApplicationCredential, Project, User
from stoker.store import identity
from stoker.store.notifier import TOKENS_TOPIC
from stoker.store.open import Store
from stoker.store.tx import Tx

#: The only domain, with the id and name of Keystone's default domain.
DOMAIN_ID, DOMAIN_NAME = "default", "Default"
ROLES = ("admin", "member", "reader", "heat_stack_user")
_ADMIN_ROLES = ("admin", "member", "reader")
_WRONG = "The request you have made requires authentication."


@dataclass(frozen=True, slots=True)
class Named:
    """A reference by id, or by name within a domain, as in Keystone's requests."""

    id: str | None = None
    name: str | None = None
    domain: str = DOMAIN_ID

    def matches(self, project: Project) -> bool:
        """Whether the reference identifies ``project``."""
        if self.id is not None:
            return self.id == project.id
        return (self.name, self.domain) == (project.name, project.domain_id)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a token: one project; the whole site, with ``system``; or neither."""

    project: Named = Named()
    system: bool = False


UNSCOPED, SYSTEM = Scope(), Scope(system=True)


class Directory:
    """
    Logs users, stack users and application credentials in and issues their tokens.

    ``secret`` is the site secret.
    """

    def __init__(self, store: Store, token_hours: int, secret: bytes) -> None:
        self._store = store
        self._limiter = LoginLimiter()
        self._stack_users = StackUsers(secret)
        self.ec2 = Ec2Keys(store, self._stack_users)
        self.tokens = Tokens(store, token_hours)

    def log_in(self, user: Named, password: str, scope: Scope | None, address: str = "") -> Issued:
        """
        Issue a token for ``scope``; None selects the user's default project.

        Raises Unauthorized without the reason, and TooManyRequests after too many failures from the client's
        ``address``.
        """
        with self._store.read() as tx:
            account = _user(tx, user)
            stack_user = stack_users.find(tx, user.id) if account is None and user.id else None
        if stack_user is not None:
            return self._log_in_stack_user(stack_user, password, scope)
        limited_name = account.id if account else f"{user.domain}/{user.name or user.id}"
        right = self.is_password(limited_name, password, account.password_hash if account else None, address)
        if account is None or not right or not account.enabled:
            raise Unauthorized(_WRONG)
        target = scope or Scope(Named(id=account.default_project_id))
        return self._issue(target, user_id=account.id, methods=("password",))

    def is_password(self, account: str, password: str, stored: str | None, address: str) -> bool:
        """
        Whether ``password`` matches the hash ``stored`` for ``account``.

        ``account`` is the id of a user or application credential, or the client's name for an account that does not
        exist; in the latter case ``stored`` is None. Raises TooManyRequests.
        """
        self._limiter.check(account, address)
        # The check also runs for accounts that do not exist, so that response times do not reveal which accounts exist.
        is_right = passwords.matches(password, stored or passwords.dummy_hash()) and stored is not None
        if is_right:
            self._limiter.record_success(account, address)
        else:
            self._limiter.record_failure(account, address)
        return is_right

    def _log_in_stack_user(self, user: StackUser, password: str, scope: Scope | None) -> Issued:
        """Log in a stack user. No slow hash is needed, because the password derives from a key."""
        right = hmac.compare_digest(self._stack_users.password(user.resource_id).encode(), password.encode())
        if not right or (scope is not None and not scope.project.matches(user.project)):
            raise Unauthorized(_WRONG)
        issue, project_id = self.tokens.issue, user.project.id
        return self._store.write(lambda tx: issue(tx, user_id=user.id, project_id=project_id, methods=("password",)))

    def log_in_program(self, credential: Named, user: Named | None, secret: str, address: str = "") -> Issued:
        """
        Issue a token for an application credential, identified by its id or by its name and user.

        Raises Unauthorized; TooManyRequests after too many failures from the client's ``address``.
        """
        with self._store.read() as tx:
            stored = _credential(tx, credential, user)
            now = tx.now
        limited_name = stored.id if stored else f"credential {credential.id or credential.name}"
        right = self.is_password(limited_name, secret, stored.secret_hash if stored else None, address)
        if stored is None or not right or (stored.expires_at is not None and stored.expires_at <= now):
            raise Unauthorized(_WRONG)
        return self._issue(
            Scope(Named(id=stored.project_id)),
            user_id=stored.user_id,
            methods=("application_credential",),
            expires_at=stored.expires_at,
            application_credential_id=stored.id,
        )

    def rescope(self, token: str, scope: Scope | None) -> Issued:
        """Issue a token for ``scope`` that expires with, and is revoked with, the given token. None keeps the scope."""
        issued = self.tokens.read(token)
        if issued.row.application_credential_id is not None:
            raise Unauthorized("A token of an application credential is valid in its project only.")
        return self._issue(
            scope or Scope(Named(id=issued.principal.project_id), system=issued.row.system),
            user_id=issued.principal.user_id,
            methods=tuple(dict.fromkeys((*issued.row.methods, "token"))),
            expires_at=issued.principal.expires_at,
            parent=token,
        )

    def _issue(self, scope: Scope, **fields: Any) -> Issued:
        def do(tx: Tx) -> Issued:
            project = _project(tx, scope.project)
            if project is None and scope.project != Named():
                raise Unauthorized(_WRONG)
            project_id = project.id if project else None
            issued = self.tokens.issue(tx, project_id=project_id, system=scope.system, **fields)
            if (project is not None or scope.system) and not issued.principal.roles:
                raise Unauthorized(_WRONG)
            return issued

        return self._store.write(do)

    def first_start(self) -> str | None:
        """Create the administrator on the first start. Returns the new password; None if the administrator exists."""
        with self._store.read() as tx:  # without a hash, which takes longer than the other steps of a later start
            if identity.find_user_by_name(tx, "admin", DOMAIN_ID) is not None:
                return None
        password = secrets.token_hex(16)
        hashed = passwords.hash_password(password)

        def do(tx: Tx) -> str | None:
            if identity.find_user_by_name(tx, "admin", DOMAIN_ID) is not None:
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
            identity.add_role(tx, user.id, SITE, ADMIN)
            return password

        return self._store.write(do)

    def reset_admin_password(self) -> str:
        """
        Set a new password for the administrator and revoke all of its tokens. Returns the password.

        Also enables a disabled administrator and restores a lost role on the system.
        """
        password = secrets.token_hex(16)
        hashed = passwords.hash_password(password)

        def do(tx: Tx) -> None:
            admin = identity.find_user_by_name(tx, "admin", DOMAIN_ID)
            assert admin is not None, "the first start makes one"
            identity.save_user(tx, replace(admin, password_hash=hashed, enabled=True))
            if ADMIN not in identity.roles(tx, admin.id, SITE):
                identity.add_role(tx, admin.id, SITE, ADMIN)
            identity.drop_tokens_of(tx, admin.id)
            tx.notify(TOKENS_TOPIC)

        self._store.write(do)
        return password


def _user(tx: Tx, ref: Named) -> User | None:
    if ref.id:
        return identity.user(tx, ref.id)
    return identity.find_user_by_name(tx, ref.name, ref.domain) if ref.name else None


def _credential(tx: Tx, ref: Named, user: Named | None) -> ApplicationCredential | None:
    if ref.id:
        return identity.find_credential(tx, ref.id)
    owner = _user(tx, user) if user else None
    return identity.find_credential_by_name(tx, owner.id, ref.name) if owner and ref.name else None


def _project(tx: Tx, ref: Named) -> Project | None:
    if ref.id:
        return identity.project(tx, ref.id)
    return identity.find_project_by_name(tx, ref.name, ref.domain) if ref.name else None
