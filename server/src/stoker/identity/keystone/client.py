"""The client with which Stoker validates tokens at Keystone, with a login of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog
from keystoneauth1.session import Session

from stoker.failures import CircuitBreaker, ServiceRejected, ServiceUnavailable
from stoker.model.errors import Unavailable
from stoker.service_client import ServiceClient

_log = structlog.get_logger("stoker.keystone")
#: Characters that a header may contain.
_TOKEN = re.compile("[!-~]+")

Body = Mapping[str, Any]
T = TypeVar("T")


def open_service(session: Session, url: str) -> ServiceClient:
    """Return a client for Keystone's API at ``url``, with the login of the session."""
    return ServiceClient(url, lambda: session, breaker=CircuitBreaker(url))


class Refused(Unavailable):
    """Keystone answers, but refuses Stoker's own request."""


class Client:
    """A client for Keystone's v3 API. ``url`` includes the version."""

    def __init__(self, session: Session, url: str) -> None:
        self._service = open_service(session, url)
        self._url = url
        self._in_use = False

    def token(self, subject: str) -> Body | None:
        """Keystone's description of a token; None if the token is invalid. Raises Unavailable."""
        if not _TOKEN.fullmatch(subject):
            return None
        path, headers = "/auth/tokens?nocatalog", {"X-Subject-Token": subject}
        answer = self._call(lambda session: self._service.request(session, "GET", path, headers=headers))
        if answer.status_code == 404:
            return None
        if answer.status_code == 200:
            return _body(answer)
        raise self._refused(answer.status_code, "to look at a token")

    def log_in(self) -> None:
        """Check Stoker's own login. Raises Refused, Unavailable."""
        try:
            self._call(lambda session: session.get_token())
        finally:
            self._in_use = True

    def _call(self, do: Callable[[Session], T]) -> T:
        try:
            return self._service.call(do)
        except ServiceUnavailable:
            raise Unavailable(f"Keystone at {self._url} does not answer; try again later") from None
        except ServiceRejected as error:
            raise self._refused(error.status, "its login") from None

    def _refused(self, status: int, what: str) -> Refused:
        sentence = f"Keystone at {self._url} refuses Stoker {what} ({status}): see the setting keystone_cloud"
        if self._in_use:  # at start-up, the caller reports the error
            _log.error("keystone.misconfigured", error=sentence)
        return Refused(sentence)


def _body(answer: Any) -> Body:
    """The token in an answer. Raises Unavailable if the answer is not Keystone's, such as a proxy's error page."""
    try:
        token = answer.json()["token"]
    except (ValueError, KeyError, TypeError):
        token = None
    if not isinstance(token, dict):
        raise Unavailable("the service that answers is not Keystone: check the setting keystone_auth_url")
    return token
