"""
The HTTP client for external services, with the sessions and logins of keystoneauth.

A service that does not answer must not block the threads of other requests and jobs. Therefore each client has a
circuit breaker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from stoker.failures import CircuitBreaker, ServiceRejected, ServiceUnavailable
from stoker.model.errors import Invalid

if TYPE_CHECKING:
    from keystoneauth1.plugin import BaseAuthPlugin
    from keystoneauth1.session import Session

#: Seconds between two probes of an unreachable service.
_SPARED = 2.0
_REFUSALS = (401, 403)
T = TypeVar("T")


class ServiceClient:
    """
    Sends requests to one service, whose URLs begin with ``root``.

    ``open_session`` opens a session with Stoker's login, and is called before the first request. ``login_of`` returns
    the login of a project; None: the session's is that of all. All methods raise ServiceUnavailable if the service does
    not answer, and ServiceRejected if the login is refused.
    """

    def __init__(
        self,
        root: str,
        open_session: Callable[[], Session],
        login_of: Callable[[str], BaseAuthPlugin] | None = None,
        *,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.root = root
        self._open_session = open_session
        self._login_of = login_of
        self._breaker = breaker or CircuitBreaker(root, _SPARED, starts_closed=False)

    @cached_property
    def _session(self) -> Session:
        return self._open_session()

    def send(
        self,
        verb: str,
        path: str,
        *,
        project_id: str = "",
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        signed: bool = False,
    ) -> Any:
        """
        Send a request and return the response. ``signed``: the headers contain a signature, so no login is needed.

        Raises ServiceUnavailable also for the status 429 and 5xx, ServiceRejected also for the status 401 and 403.
        """
        options: dict[str, Any] = {"data": content, "headers": dict(headers or {}), "authenticated": not signed}
        if self._login_of is not None and not signed:
            options["auth"] = self._login_of(project_id)
        response = self.call(lambda session: self.request(session, verb, path, **options))
        if response.status_code in _REFUSALS:
            message = f"{verb} {self.root}{path} returned status {response.status_code}"
            raise ServiceRejected(message, response.status_code)
        return response

    def request(self, session: Session, verb: str, path: str, **options: Any) -> Any:
        """
        Send a request inside ``call``, with options of keystoneauth. The response may have any status below 500 but
        429.
        """
        response = session.request(self.root + path, verb, raise_exc=False, redirect=False, log=False, **options)
        if response.status_code >= 500 or response.status_code == 429:
            raise ServiceUnavailable(f"{verb} {self.root}{path} returned status {response.status_code}")
        return response

    def call(self, do: Callable[[Session], T]) -> T:
        """Return the result of ``do(session)``, which calls ``request`` or uses the session's login."""
        # Imported late, because the import takes 0.2 s, and a site with embedded services may never need it.
        from keystoneauth1 import exceptions

        with self._breaker.guard():
            try:
                return do(self._session)
            except exceptions.HttpError as error:  # only the session's own login raises HTTP errors
                status = error.http_status
                if status < 500 and status != 429:
                    raise ServiceRejected(f"the login for {self.root} is refused ({status}): {error}", status) from None
                raise ServiceUnavailable(f"the login for {self.root} returned status {status}") from None
            except exceptions.ClientException as error:
                raise ServiceUnavailable(f"{self.root} does not answer: {error}") from None
            except Invalid as error:  # clouds.yaml has no such login, but may change
                raise ServiceUnavailable(error.message) from None

    def close(self) -> None:
        """Close the connections."""
        if "_session" in vars(self):
            self._session.session.close()


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
