"""
Authentication at Keystone: of tokens, and of people who log in to the console; and the components of Keystone mode.

Token validation results, including negative ones, are cached in memory for ``keystone_cache_seconds``, so a revoked
token may be accepted for that long.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from keystoneauth1.session import Session

from stoker import cloud_entries
from stoker.bounded_dict import BoundedDict
from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.identity import stack_users
from stoker.identity.keystone.accounts import Accounts, open_service
from stoker.identity.passwords import LoginLimiter
from stoker.identity.tokens import ADMIN
from stoker.model.errors import Invalid, Unauthorized, Unavailable
from stoker.model.principal import Principal, Project
from stoker.settings import Settings
from stoker.store import stack_users as known_users
from stoker.store.open import Store

_log = structlog.get_logger("stoker.keystone")
#: Characters that a header may contain.
_TOKEN = re.compile("[!-~]+")
_REMEMBERED = 10_000
#: Seconds that a rejection is cached. Short, because one of several Keystone servers may not know a new token yet.
_REFUSED_SECONDS = 2.0
#: Number of locks. Threads that validate the same token at the same time wait for the first of them.
_LANES = 64
_WRONG = "The token is not valid, or has expired."

Body = Mapping[str, Any]


class Refused(Unavailable):
    """Keystone answers, but refuses Stoker's own request."""


class KeystoneTokens:
    """
    Validates tokens at Keystone, with Stoker's own login.

    ``session`` has this login. ``url`` includes the version. ``seconds``: how long a validated token is cached.
    """

    def __init__(self, store: Store, session: Session, url: str, seconds: int) -> None:
        self._store = store
        self._service = open_service(session, url)
        self._url = url
        self._in_use = False
        self._seconds = float(seconds)
        self._lanes = [threading.Lock() for _ in range(_LANES)]
        #: Hash of a token → its principal, and the end of the entry on the monotonic clock.
        self._seen: BoundedDict[bytes, tuple[Principal, float]] = BoundedDict(_REMEMBERED)
        #: Hash of a refused token → the end of the entry.
        self._refused: BoundedDict[bytes, float] = BoundedDict(_REMEMBERED)

    def get_cached(self, token: str) -> Principal | None:
        """The principal of a recently validated token, without I/O; None if ``validate`` is needed."""
        principal, until = self._seen.get(_hash(token), (None, 0.0))
        return principal if until > time.monotonic() else None

    def validate(self, token: str) -> Principal:
        """
        The principal of a token. Raises Unauthorized for any invalid token, Unavailable if Keystone does not answer.
        """
        key = _hash(token)
        with self._lanes[key[0] % _LANES]:
            principal = self.get_cached(token)
            if principal is not None:
                return principal
            if self._refused.get(key, 0.0) > time.monotonic():
                raise Unauthorized(_WRONG)
            asked_at = time.monotonic()
            body = self._look_up(token)
            if body is None:
                self._seen.drop(key)
                self._refused.put(key, asked_at + _REFUSED_SECONDS)
                raise Unauthorized(_WRONG)
            principal = self.principal(body)
            seconds = min(self._seconds, (principal.expires_at - self._store.clock.now()).total_seconds())
            self._seen.put(key, (principal, asked_at + seconds))
            return principal

    def log_in(self) -> None:
        """Check Stoker's own login. Raises Refused, Unavailable."""
        try:
            self._call(lambda session: session.get_token())
        finally:
            self._in_use = True

    def _look_up(self, token: str) -> Body | None:
        """Return Keystone's description of a token; None if the token is invalid. Raises Unavailable."""
        if not _TOKEN.fullmatch(token):
            return None
        path, headers = "/auth/tokens?nocatalog", {"X-Subject-Token": token}
        answer = self._call(lambda session: self._service.request(session, "GET", path, headers=headers))
        if answer.status_code == 404:
            return None
        if answer.status_code == 200:
            return _body(answer)
        raise self._refuse(answer.status_code, "to look at a token")

    def _call(self, do: Callable[[Session], Any]) -> Any:
        try:
            return self._service.call(do)
        except ServiceUnavailable:
            raise Unavailable(f"Keystone at {self._url} does not answer; try again later") from None
        except ServiceRejected as error:
            raise self._refuse(error.status, "its login") from None

    def _refuse(self, status: int, what: str) -> Refused:
        sentence = f"Keystone at {self._url} refuses Stoker {what} ({status}): see the setting keystone_cloud"
        if self._in_use:  # at start-up, the caller reports the error
            _log.error("keystone.misconfigured", error=sentence)
        return Refused(sentence)

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


def _body(answer: Any) -> Body:
    """The token in an answer. Raises Unavailable if the answer is not Keystone's, such as a proxy's error page."""
    try:
        token = answer.json()["token"]
    except (ValueError, KeyError, TypeError):
        token = None
    if not isinstance(token, dict):
        raise Unavailable("the service that answers is not Keystone: check the setting keystone_auth_url")
    return token


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class KeystoneLogins:
    """Logins at Keystone with the users' own passwords and tokens; the methods are those of ``OwnLogins``."""

    def __init__(self, session: Session, url: str) -> None:
        """``session`` has the certificates and timeouts; its own login is not used. ``url`` includes the version."""
        self._service = open_service(session, url)
        self._limiter = LoginLimiter()

    def log_in(self, name: str, password: str, domain: str, address: str) -> str:
        """Failures are limited here, too, because Keystone sees the address of this server only."""
        account = f"{domain}/{name}"
        self._limiter.check(account, address)
        user = {"name": name, "password": password, "domain": {"name": domain}}
        try:
            token = self._issue({"methods": ["password"], "password": {"user": user}}, "unscoped")
        except Unauthorized:
            self._limiter.record_failure(account, address)
            raise
        self._limiter.record_success(account, address)
        return token

    def enter(self, token: str, project_id: str) -> str:
        return self._issue({"methods": ["token"], "token": {"id": token}}, {"project": {"id": project_id}})

    def leave(self, token: str) -> str:
        return self._issue({"methods": ["token"], "token": {"id": token}}, "unscoped")

    def list_projects(self, token: str) -> Sequence[Project]:
        answer = self._send("GET", "/auth/projects", headers={"X-Auth-Token": token})
        return [
            Project(id=project["id"], name=project["name"], domain_id=project["domain_id"])
            for project in answer.json()["projects"]
            if project.get("enabled", True)
        ]

    def revoke(self, token: str) -> None:
        self._send("DELETE", "/auth/tokens", headers={"X-Auth-Token": token, "X-Subject-Token": token})

    def _issue(self, identity: dict[str, Any], scope: Any) -> str:
        body = {"auth": {"identity": identity, "scope": scope}}
        return str(self._send("POST", "/auth/tokens?nocatalog", json=body).headers["X-Subject-Token"])

    def _send(self, verb: str, path: str, **options: Any) -> Any:
        """Send a request without Stoker's own login. Raises Unauthorized, Unavailable."""
        try:
            answer = self._service.call(
                lambda session: self._service.request(session, verb, path, authenticated=False, **options)
            )
        except (ServiceUnavailable, ServiceRejected):
            raise Unavailable("Keystone does not answer; try again later") from None
        if answer.status_code >= 400:
            raise Unauthorized("The user name or the password is wrong.")
        return answer


@dataclass(frozen=True, slots=True)
class Keystone:
    """The components of Keystone mode."""

    tokens: KeystoneTokens
    logins: KeystoneLogins
    #: None if no domain administrator is configured: Stoker creates no users.
    accounts: Accounts | None


def open_keystone(settings: Settings, store: Store) -> Keystone:
    """Create the components. Succeeds while Keystone is unavailable. Raises Invalid if the settings are wrong."""
    session = cloud_entries.open_session(settings.keystone_cloud, "keystone_cloud")
    url = f"{settings.identity_url}/v3"
    tokens = KeystoneTokens(store, session, url, settings.keystone_cache_seconds)
    try:
        tokens.log_in()
    except Refused as error:
        raise Invalid(error.message) from None
    except Unavailable:
        pass  # requests fail with it
    accounts = None
    if settings.stack_domain_cloud:
        domain = cloud_entries.open_session(settings.stack_domain_cloud, "stack_domain_cloud")
        accounts = Accounts(domain, url)
    return Keystone(tokens, KeystoneLogins(session, url), accounts)
