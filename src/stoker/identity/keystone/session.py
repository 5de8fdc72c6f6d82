"""Sessions at Keystone with a circuit breaker, so that no threads wait for a network that drops packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from keystoneauth1 import exceptions
from keystoneauth1.session import Session

from stoker.circuit_breaker import CircuitBreaker, ServiceRejected, ServiceUnavailable

T = TypeVar("T")


class GuardedSession:
    """
    Requests with the login of a keystoneauth session, to Keystone's API at ``url``.

    All methods raise ServiceUnavailable if Keystone does not answer, and ServiceRejected if it refuses the login.
    """

    def __init__(self, session: Session, url: str) -> None:
        self._session = session
        self._url = url
        self._breaker = CircuitBreaker(url)

    def send(self, session: Session, verb: str, path: str, **options: Any) -> Any:
        """Send a request inside ``call``."""
        return session.request(self._url + path, verb, raise_exc=False, redirect=False, log=False, **options)

    def call(self, do: Callable[[Session], T]) -> T:
        """Return the result of ``do(session)``."""
        with self._breaker.guard():
            try:
                result = do(self._session)
                status = getattr(result, "status_code", 200)
            except exceptions.HttpError as error:  # only the session's own login raises HTTP errors
                status = error.http_status
                if status < 500:
                    raise ServiceRejected(f"Keystone at {self._url} refuses the login ({status})", status) from None
            except exceptions.ClientException as error:
                raise ServiceUnavailable(f"Keystone at {self._url} does not answer: {error}") from None
            if status >= 500 or status == 429:
                raise ServiceUnavailable(f"Keystone at {self._url} returned status {status}")
            return result

    def invalidate(self) -> None:
        """Log in again before the next request."""
        self._session.invalidate()
