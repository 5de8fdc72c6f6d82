"""
HTTP client for external services, used by jobs, and its logins: Swift's own users, entries of clouds.yaml, and Stoker's
own tokens.

An unreachable service must not block the threads of other jobs. Therefore each client has a circuit breaker.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stoker import cloud_entries
from stoker.failures import CircuitBreaker, ServiceRejected, ServiceUnavailable
from stoker.model.errors import Invalid

if TYPE_CHECKING:
    import httpx2

#: Seconds: timeout of a request, and pause between probes of an unreachable service.
_PATIENCE, _SPARED = 5.0, 2.0
_UNAUTHORIZED = 401


class Login(Protocol):
    """Credentials for a service."""

    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        """
        Return the headers that authenticate a request of this project. Raises ServiceUnavailable and ServiceRejected.
        """

    def forget(self, project_id: str) -> None:
        """Discard the credentials, which the service refused; the next call of ``headers`` obtains new ones."""


class ServiceClient:
    """Sends requests to one service."""

    def __init__(self, root: str, login: Login, ca_file: Path | None = None) -> None:
        self.root = root
        self._ca_file = ca_file
        self._login = login
        self._breaker = CircuitBreaker(root, _SPARED, starts_closed=False)
        self._http: httpx2.Client | None = None

    def send_request(
        self,
        verb: str,
        path: str,
        *,
        project_id: str = "",
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        signed: bool = False,
    ) -> httpx2.Response:
        """
        Send a request and return the response.

        ``signed``: the headers contain a signature, so no login is needed. Raises ServiceUnavailable if there is no
        response, or for the status 429 and 5xx; ServiceRejected for the status 401 and 403, and if the login is
        refused.
        """
        with self._breaker.guard():
            response = self._send(verb, path, project_id, content, headers or {}, signed)
            if response.status_code == _UNAUTHORIZED and not signed:
                self._login.forget(project_id)
                response = self._send(verb, path, project_id, content, headers or {}, signed)
            self._check(response, verb, path)
        return response

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()

    def _send(
        self,
        verb: str,
        path: str,
        project_id: str,
        content: bytes | None,
        headers: Mapping[str, str],
        signed: bool,
    ) -> httpx2.Response:
        # Imported here because sites with embedded services need not pay for the import at start-up.
        import httpx2

        if self._http is None:
            trust = ssl.create_default_context(cafile=self._ca_file) if self._ca_file else True
            self._http = httpx2.Client(timeout=_PATIENCE, verify=trust)
        try:
            login = {} if signed else self._login.headers(self._http, project_id)
            return self._http.request(verb, self.root + path, content=content, headers={**login, **headers})
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ServiceUnavailable(f"{self.root} does not answer: {type(error).__name__}: {error}") from None

    def _check(self, response: httpx2.Response, verb: str, path: str) -> None:
        if response.status_code >= 500 or response.status_code == 429:
            raise ServiceUnavailable(f"{verb} {self.root}{path} returned status {response.status_code}")
        if response.status_code in (_UNAUTHORIZED, 403):
            raise ServiceRejected(
                f"{verb} {self.root}{path} returned status {response.status_code}", response.status_code
            )


@contextmanager
def rejecting_malformed() -> Iterator[None]:
    """
    Wrap code that parses a response. Raises ServiceUnavailable for a malformed response, which may come from a proxy.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ServiceUnavailable(f"a response cannot be read: {type(error).__name__}: {error}") from None


def check_status(response: Any, *statuses: int) -> None:
    """Raise ServiceRejected unless the response has one of these statuses."""
    if response.status_code not in statuses:
        request, text = response.request, response.text[:300]
        message = f"{request.method} {request.url} returned status {response.status_code}: {text}"
        raise ServiceRejected(message, response.status_code)


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
