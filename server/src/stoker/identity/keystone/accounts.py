"""Projects and users at Keystone for stacks and their resources, in a separate domain."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from keystoneauth1.session import Session

from stoker.failures import CircuitBreaker, ServiceRejected
from stoker.identity.stack_users import ROLE
from stoker.service_client import ServiceClient

_SETTINGS = "see the entry of clouds.yaml that stack_domain_cloud names"
#: These users cannot change passwords, and failed logins by others must not lock an agent out.
_OPTIONS = {
    "ignore_change_password_upon_first_use": True,
    "ignore_password_expiry": True,
    "ignore_lockout_failure_attempts": True,
}


def open_service(session: Session, url: str) -> ServiceClient:
    """Return a client for Keystone's API at ``url``, with the login of the session."""
    return ServiceClient(url, lambda: session, breaker=CircuitBreaker(url))


class Accounts:
    """
    Creates, changes and deletes the projects and users. All operations are idempotent.

    All methods raise ServiceUnavailable if Keystone does not answer, and ServiceRejected if it rejects the request.
    """

    def __init__(self, session: Session, url: str) -> None:
        self._service = open_service(session, url)
        self._lock = threading.Lock()
        self._role: str | None = None

    def log_in(self) -> None:
        """Check the login of the domain's administrator."""
        self._access()

    @property
    def domain_id(self) -> str:
        """The id of the domain that contains the stack users."""
        return str(self._access().domain_id)

    def project(self, name: str, description: str) -> str:
        """Create the project if it is missing. Returns its id."""
        project = {"name": name, "domain_id": self.domain_id, "description": description}
        answer = self._request("POST", "/projects", {"project": project}, allowed=(201, 409))
        if answer.status_code == 201:
            return str(answer.json()["project"]["id"])
        return self._there("projects", name)

    def user(self, name: str, project_id: str, password: str) -> str:
        """
        Create the user, enabled and with the role in the project, if it is missing. Returns its id.

        Raises ServiceRejected if another project's user has the name.
        """
        user = {
            "name": name,
            "domain_id": self.domain_id,
            "default_project_id": project_id,
            "password": password,
            "enabled": True,
            "options": _OPTIONS,
        }
        answer = self._request("POST", "/users", {"user": user}, allowed=(201, 409))
        if answer.status_code == 201:
            id = str(answer.json()["user"]["id"])
        else:
            id = self._there("users", name, default_project_id=project_id)
            self._request("PATCH", f"/users/{id}", {"user": {"password": password, "enabled": True}})
        self._request("PUT", f"/projects/{project_id}/users/{id}/roles/{self._role_id()}")
        return id

    def enable(self, user_id: str, *, enabled: bool) -> bool:
        """Enable or disable a user. Returns False if the user no longer exists."""
        answer = self._request("PATCH", f"/users/{user_id}", {"user": {"enabled": enabled}}, allowed=(200, 404))
        return bool(answer.status_code == 200)

    def delete_user(self, id: str | None, name: str) -> None:
        """Delete a user, by name if the id is None."""
        user_id = id or self._find("users", name)
        if user_id is not None:
            self._request("DELETE", f"/users/{user_id}", allowed=(204, 404))

    def delete_project(self, id: str | None, name: str) -> None:
        """Delete a project, by name if the id is None."""
        project_id = id or self._find("projects", name)
        if project_id is not None:
            self._request("DELETE", f"/projects/{project_id}", allowed=(204, 404))

    def _role_id(self) -> str:
        with self._lock:
            if self._role is None:
                roles = self._request("GET", f"/roles?name={ROLE}").json()["roles"]
                if not roles:
                    raise ServiceRejected(f"Keystone has no role {ROLE}: openstack role create {ROLE}", 404)
                self._role = str(roles[0]["id"])
            return self._role

    def _there(self, kind: str, name: str, **like: str) -> str:
        id = self._find(kind, name, **like)
        if id is None:
            raise ServiceRejected(
                f"Keystone has another one of the {kind} with the name {name} in the domain of stacks' users", 409
            )
        return id

    def _find(self, kind: str, name: str, **like: str) -> str | None:
        query = urlencode({"name": name, "domain_id": self.domain_id})
        for item in self._request("GET", f"/{kind}?{query}").json()[kind]:
            if all(item.get(key) == value for key, value in like.items()):
                return str(item["id"])
        return None

    def _access(self) -> Any:
        return self._call(lambda session: session.auth.get_access(session))

    def _request(self, verb: str, path: str, body: Any = None, *, allowed: tuple[int, ...] = (200, 201, 204)) -> Any:
        answer = self._call(lambda session: self._service.request(session, verb, path, json=body))
        if answer.status_code in allowed:
            return answer
        refusal = f"Keystone refuses {verb} {path.partition('?')[0]} ({answer.status_code}): {_SETTINGS}"
        raise ServiceRejected(refusal, answer.status_code)

    def _call(self, do: Callable[[Session], Any]) -> Any:
        try:
            return self._service.call(do)
        except ServiceRejected as error:
            refusal = f"Keystone refuses the login of stack_domain_cloud ({error.status}): {_SETTINGS}"
            raise ServiceRejected(refusal, error.status) from None
