"""
HTTP client for external services, used by jobs.

An unreachable service must not block the threads of other jobs. Therefore each client has a circuit breaker.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stoker.circuit_breaker import CircuitBreaker, ServiceRejected, ServiceUnavailable

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
