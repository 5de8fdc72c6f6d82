"""Credentials for external services: Swift's own users, entries of clouds.yaml, and Stoker's own tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stoker.circuit_breaker import ServiceRejected, ServiceUnavailable

if TYPE_CHECKING:
    import httpx2


#: Timeout of a login in seconds.
_PATIENCE = 5


class SwiftLogin:
    """Login for a Swift with its own users (tempauth and similar): exchanges a user and a key for a token."""

    def __init__(self, auth_url: str, user: str, key: str) -> None:
        self._auth_url = auth_url
        self._credentials = {"X-Storage-User": user, "X-Storage-Pass": key, "X-Auth-User": user, "X-Auth-Key": key}
        self._token: str | None = None

    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        token = self._token
        if token is None:
            answer = http.get(self._auth_url, headers=self._credentials)
            if answer.status_code >= 500:
                raise ServiceUnavailable(f"{self._auth_url} answered {answer.status_code}")
            token = answer.headers.get("X-Auth-Token")
            if answer.status_code >= 300 or not token:
                raise ServiceRejected(f"{self._auth_url} refused the login: {answer.status_code}", answer.status_code)
            self._token = token
        return {"X-Auth-Token": token}

    def forget(self, project_id: str) -> None:
        self._token = None


class CloudLogin:
    """Login with an entry of clouds.yaml, with any type of credentials."""

    def __init__(self, name: str) -> None:
        self._name = name
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
        from openstack.config import OpenStackConfig
        from openstack.exceptions import SDKException

        try:
            with self._lock:
                if self._session is None:
                    entry = OpenStackConfig().get_one(cloud=self._name, api_timeout=_PATIENCE)
                    self._region = entry.config.get("region_name") or None
                    self._session = entry.get_session()
                yield self._session
        except (ClientException, SDKException) as error:
            raise ServiceUnavailable(f"cannot log in to the cloud {self._name}: {error}") from None


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
