"""Requests to Keystone for trusts, with the login of Stoker's own user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from stoker.backends.cloud.client import Access
from stoker.circuit_breaker import ServiceUnavailable
from stoker.model.errors import Unavailable
from stoker.model.principal import Principal
from stoker.settings import Settings

_log = structlog.get_logger("stoker.backends")


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """The login of Stoker's own user at Keystone, without a project."""

    auth_url: str
    names: Mapping[str, str]
    region: str | None = None


class KeystoneTrusts:
    """Creates, uses and deletes trusts whose trustee is Stoker's own user."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def open(self, trust_id: str) -> Access:
        """Return the access to the cloud that a trust grants."""
        return Access(self._session({"trust_id": trust_id}), self._user().region)

    def open_token(self, token: str, project_id: str) -> Access:
        """Return the access to the cloud that a token of the project grants."""
        from keystoneauth1.identity import v3
        from keystoneauth1.session import Session

        user = self._user()
        auth = v3.Token(auth_url=user.auth_url, token=token, project_id=project_id)
        return Access(Session(auth=auth, timeout=self._settings.keystone_timeout), user.region)

    def create(self, token: str, principal: Principal, project_id: str) -> Any:
        """Request a trust with the token of its trustor; return the response. Raises Unavailable."""
        from keystoneauth1 import exceptions

        roles = [role.strip() for role in self._settings.trust_roles.split(",") if role.strip()]
        trust = {
            "trustor_user_id": principal.user_id,
            "trustee_user_id": "",
            "project_id": project_id,
            "impersonation": True,
            "roles": [{"name": role} for role in roles or sorted(principal.roles)],
        }
        try:
            session = self._session({})
            trust["trustee_user_id"] = session.get_user_id()
            return session.post(
                f"{self._settings.identity_url}/v3/OS-TRUST/trusts",
                json={"trust": trust},
                headers={"X-Auth-Token": token},
                authenticated=False,
                raise_exc=False,
                log=False,
            )
        except exceptions.ClientException as error:
            raise Unavailable(f"Keystone does not answer: {error}") from None

    def is_own_login_valid(self) -> bool:
        """Return whether Keystone accepts Stoker's own login."""
        from keystoneauth1 import exceptions

        try:
            return bool(self._session({}).get_token())
        except exceptions.ClientException:
            return False

    def _session(self, scope: Mapping[str, str]) -> Any:
        from keystoneauth1.identity import v3
        from keystoneauth1.session import Session

        user = self._user()
        options: dict[str, Any] = {**user.names, **(scope or {"unscoped": True})}
        auth = v3.Password(auth_url=user.auth_url, **options)
        return Session(auth=auth, timeout=self._settings.keystone_timeout)

    def _user(self) -> ServiceUser:
        settings = self._settings
        if settings.keystone_cloud:
            return _user_of_entry(settings.keystone_cloud)
        names = {
            "username": settings.keystone_user,
            "password": settings.keystone_password,
            "user_domain_name": settings.keystone_domain,
        }
        return ServiceUser(f"{settings.identity_url}/v3", names)

    def delete(self, trust_id: str) -> None:
        """Delete a trust with its own login, as only the trustor may. Raises ServiceUnavailable."""
        from keystoneauth1 import exceptions

        url = f"{self._settings.identity_url}/v3/OS-TRUST/trusts/{trust_id}"
        try:
            answer = self._session({"trust_id": trust_id}).delete(url, raise_exc=False, log=False)
        except (exceptions.Unauthorized, exceptions.NotFound, exceptions.Forbidden):
            return  # the trust, its trustor or the roles are gone
        except exceptions.ClientException as error:
            raise ServiceUnavailable(f"Keystone does not answer: {error}") from None
        if answer.status_code >= 500:
            raise ServiceUnavailable(f"Keystone answered {answer.status_code}")
        if answer.status_code not in (204, 404):
            _log.warning("trust.kept", status=answer.status_code)


def _user_of_entry(name: str) -> ServiceUser:
    from openstack.config import OpenStackConfig

    entry = OpenStackConfig().get_one(cloud=name)
    auth: dict[str, str] = dict(entry.config["auth"])
    keys: Sequence[str] = ("username", "user_id", "password", "user_domain_name", "user_domain_id")
    names = {key: auth[key] for key in keys if auth.get(key)}
    return ServiceUser(auth["auth_url"], names, entry.config.get("region_name") or None)
