"""Credentials for external services: Swift's own users, entries of clouds.yaml, and Stoker's own tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stoker import cloud_entries
from stoker.circuit_breaker import ServiceRejected, ServiceUnavailable
from stoker.model.errors import Invalid

if TYPE_CHECKING:
    import httpx2


#: Part of the URL of a login that Swift itself provides.
_OWN_LOGIN = "/auth/v1"


class CloudLogin:
    """Login with an entry of clouds.yaml, with any type of credentials."""

    def __init__(self, name: str, setting: str) -> None:
        """``setting``: the setting that names the entry."""
        self._name = name
        self._setting = setting
        self._lock = threading.Lock()
        self._session: Any = None
        self._region: str | None = None

    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        with self._open_session() as session:
            return {"X-Auth-Token": session.get_token()}

    def endpoint(self, service: str) -> str:
        """
        Return the service's endpoint in the entry's region. Raises ServiceUnavailable, also if the catalog has none.
        """
        with self._open_session() as session:
            url: str | None = session.get_endpoint(service_type=service, region_name=self._region)
        if not url:
            raise ServiceUnavailable(f"the cloud {self._name} has no {service} service in its region {self._region}")
        return url

    def forget(self, project_id: str) -> None:
        with self._lock:
            if self._session is not None:
                self._session.invalidate()

    @contextmanager
    def _open_session(self) -> Iterator[Any]:
        """Open the session at first use, and lock it for one thread at a time. Raises ServiceUnavailable."""
        # Imported here because the import takes 0.2 s and only sites with an entry of clouds.yaml need it.
        from keystoneauth1.exceptions import ClientException

        try:
            with self._lock:
                if self._session is None:
                    entry = cloud_entries.find(self._name, self._setting)
                    self._region = entry.config.get("region_name") or None
                    self._session = entry.get_session()
                yield self._session
        except (ClientException, Invalid) as error:
            raise ServiceUnavailable(f"cannot log in to the cloud {self._name}: {error}") from None


class SwiftLogin(CloudLogin):
    """Login at a Swift: at its Keystone, or at Swift itself (tempauth and similar), which has users and keys."""

    def __init__(self, name: str, setting: str) -> None:
        super().__init__(name, setting)
        self._token: str | None = None

    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        if self._token is None:
            auth = self._read()
            url = str(auth.get("auth_url"))
            if _OWN_LOGIN not in url:
                return super().headers(http, project_id)
            self._token = _log_in_at_swift(http, url, auth)
        return {"X-Auth-Token": self._token}

    def forget(self, project_id: str) -> None:
        self._token = None
        super().forget(project_id)

    def _read(self) -> Mapping[str, Any]:
        try:
            return dict(cloud_entries.read(self._name, self._setting).get("auth") or {})
        except Invalid as error:
            raise ServiceUnavailable(error.message) from None


def _log_in_at_swift(http: httpx2.Client, url: str, auth: Mapping[str, Any]) -> str:
    """Exchange a user and a key for a token."""
    user, key = str(auth.get("username")), str(auth.get("password"))
    names = {"X-Storage-User": user, "X-Storage-Pass": key, "X-Auth-User": user, "X-Auth-Key": key}
    answer = http.get(url, headers=names)
    if answer.status_code >= 500:
        raise ServiceUnavailable(f"{url} answered {answer.status_code}")
    token: str | None = answer.headers.get("X-Auth-Token")
    if answer.status_code >= 300 or not token:
        raise ServiceRejected(f"{url} refused the login: {answer.status_code}", answer.status_code)
    return token


class StokerLogin:
    """Login for a Zaqar that accepts Stoker's tokens, or any client: one of Stoker's own tokens for each project."""

    def __init__(self, token_of: Callable[[str], str | None]) -> None:
        self._token_of = token_of
        self._tokens: dict[str, str | None] = {}

    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        if project_id not in self._tokens:
            self._tokens[project_id] = self._token_of(project_id)
        token = self._tokens[project_id]
        return {"X-Project-Id": project_id, **({"X-Auth-Token": token} if token else {})}

    def forget(self, project_id: str) -> None:
        self._tokens.pop(project_id, None)
