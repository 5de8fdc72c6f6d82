"""The logins of people who use the console, at Keystone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keystoneauth1.session import Session

from stoker.circuit_breaker import ServiceRejected, ServiceUnavailable
from stoker.identity.keystone.client import GuardedSession
from stoker.identity.login_limits import LoginLimiter
from stoker.model.errors import Unauthorized, Unavailable
from stoker.model.principal import Project


class KeystoneLogins:
    """Logins at Keystone with the users' own passwords and tokens. See ``identity.logins.Logins``."""

    def __init__(self, session: Session, url: str) -> None:
        """``session`` has the certificates and timeouts; its own login is not used. ``url`` includes the version."""
        self._session = GuardedSession(session, url)
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
            answer = self._session.call(
                lambda session: self._session.send(session, verb, path, authenticated=False, **options)
            )
        except (ServiceUnavailable, ServiceRejected):
            raise Unavailable("Keystone does not answer; try again later") from None
        if answer.status_code >= 400:
            raise Unauthorized("The user name or the password is wrong.")
        return answer
