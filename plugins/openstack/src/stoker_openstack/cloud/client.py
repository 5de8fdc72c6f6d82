"""
The client of one OpenStack cloud with one login: requests to all its services, in the form of their REST APIs.

The representations of the services are stored as they are (``CloudObject.observed``), so responses are not converted to
the classes of openstacksdk, which rename their members. openstacksdk reads clouds.yaml, and keystoneauth logs in, finds
the endpoints and negotiates versions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stoker.failures import CircuitBreaker, ServiceRejected, ServiceUnavailable
from stoker.service_client import rejecting_malformed
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session

#: Nova's microversion of requests that name no other: the newest whose representation of a server has the flavor's id.
MICROVERSION = "2.42"
COMPUTE, NETWORK, VOLUME, IMAGE = "compute", "network", "block-storage", "image"
OBJECT_STORE, KEY_MANAGER, IDENTITY = "object-store", "key-manager", "identity"
#: What people call the services.
NAMES: Mapping[str, str] = {
    COMPUTE: "Nova",
    NETWORK: "Neutron",
    VOLUME: "Cinder",
    IMAGE: "Glance",
    OBJECT_STORE: "Swift",
    KEY_MANAGER: "Barbican",
    IDENTITY: "Keystone",
}
#: The major version of each API whose URL is not used as the catalog has it.
_VERSIONS = {COMPUTE: "2", NETWORK: "2", VOLUME: "3", IMAGE: "2", KEY_MANAGER: "1", IDENTITY: "3"}
#: Seconds: timeouts of reading and of changing requests, and the pause between probes of an unreachable service.
_READ_SECONDS, _CHANGE_SECONDS, _SPARED = 30.0, 120.0, 2.0
#: The monotonic time at which all requests of the current thread end; None: each has its own timeout.
_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)
#: The kind of an error by its status, as the services' Python clients name it.
_KINDS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    413: "OverLimit",
    501: "HTTPNotImplemented",
}
#: Statuses of a service that is not available, or of the proxy before it.
_AWAY = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Access:
    """An authenticated session, and where the cloud's services are."""

    session: Session
    region: str | None = None
    interface: str = "public"
    #: URLs that replace those of the catalog, by type of service.
    endpoints: Mapping[str, str] | None = None


class CloudClient:
    """
    Sends requests to the services of a cloud.

    ``open_access`` logs in, at the first request. ``breakers`` are the circuit breakers of the services, which clients
    of the same cloud share. ``refuse`` returns the error for a login that Keystone refuses.

    All methods raise ServiceUnavailable if a service does not answer, ServiceRejected if the login is refused,
    RetryLater for too many requests, and CloudRefused for all other errors.
    """

    def __init__(
        self,
        name: str,
        open_access: Callable[[], Access],
        breakers: Mapping[str, CircuitBreaker],
        refuse: Callable[[ServiceRejected], Exception] = lambda error: error,
    ) -> None:
        self.name = name
        self._refuse = refuse
        self._open_access = open_access
        self._breakers = breakers
        self._lock = threading.Lock()
        #: Held during a login, so that the threads that wait for it learn that Keystone does not answer.
        self._login_lock = threading.Lock()
        self._access: Access | None = None
        self._adapters: dict[str, Adapter] = {}

    def request(
        self,
        service: str,
        verb: str,
        path: str,
        body: Any = None,
        *,
        query: Any = None,
        microversion: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return the response. ``body`` is JSON; ``query`` is a mapping or a list of pairs."""
        self._log_in()
        options: dict[str, Any] = {"json": body, "params": query or None, "headers": dict(headers or {})}
        if microversion is not None:
            options["microversion"] = microversion
        timeout = _timeout(_READ_SECONDS if verb in ("GET", "HEAD") else _CHANGE_SECONDS)
        with self._breakers[service].guard(), self._converting_errors(service):
            adapter = self._adapter(service)
            response = adapter.request(path, verb, raise_exc=False, log=False, timeout=timeout, **options)
            if response.status_code in _AWAY:
                raise ServiceUnavailable(f"{NAMES[service]} at {response.url} returned status {response.status_code}")
        if response.status_code >= 400:
            raise _error_of(service, response)
        return response

    def get(self, service: str, path: str, *, query: Any = None) -> Any:
        """Return the decoded body of a GET request."""
        answer = self.request(service, "GET", path, query=query)
        with rejecting_malformed():
            return answer.json()

    def token(self) -> str:
        """Return a valid token."""
        self._log_in()
        with self._converting_errors(IDENTITY):
            return str(self._logged_in().session.get_token())

    def forget_token(self) -> None:
        """Log in again at the next request: a service has refused the token."""
        with self._lock:
            access = self._access
        if access is not None:
            access.session.invalidate()

    def _log_in(self) -> None:
        """Get a token, unless the present one is valid. Only one thread at a time asks Keystone."""
        with self._login_lock, self._breakers[IDENTITY].guard(), self._converting_errors(IDENTITY):
            self._logged_in().session.get_token()

    def _adapter(self, service: str) -> Adapter:
        from keystoneauth1.adapter import Adapter

        access = self._logged_in()
        with self._lock:
            if service not in self._adapters:
                version = _VERSIONS.get(service)
                options: dict[str, Any] = {"endpoint_override": (access.endpoints or {}).get(service)}
                if service == COMPUTE:
                    options["default_microversion"] = MICROVERSION
                if version is not None and not options["endpoint_override"]:
                    options |= {"min_version": version, "max_version": f"{version}.latest"}
                self._adapters[service] = Adapter(
                    access.session,
                    service_type=service,
                    interface=access.interface,
                    region_name=access.region,
                    **options,
                )
            return self._adapters[service]

    def _logged_in(self) -> Access:
        with self._lock:
            if self._access is None:
                self._access = self._open_access()
            return self._access

    @contextmanager
    def _converting_errors(self, service: str) -> Iterator[None]:
        from keystoneauth1 import exceptions

        try:
            yield
        except exceptions.EndpointNotFound:
            raise CloudFailure(f"The cloud {self.name} has no {service} service.", "EndpointNotFound") from None
        except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound) as error:
            # Only the login raises HTTP errors; the trust may be gone (NotFound).
            message = f"the cloud {self.name} refuses the login: {error.message}"
            raise self._refuse(ServiceRejected(message, error.http_status)) from None
        except (exceptions.ClientException, OSError) as error:
            raise ServiceUnavailable(f"{NAMES[service]} of the cloud {self.name} does not answer: {error}") from None


@contextmanager
def suppressing(*statuses: int) -> Iterator[None]:
    """Ignore that a service refuses the request inside with one of these statuses."""
    try:
        yield
    except CloudRefused as error:
        if error.status not in statuses:
            raise


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Limit the time of all requests inside together. Those that begin too late raise ServiceUnavailable."""
    token = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def _timeout(seconds: float) -> float:
    """Return the timeout of a request that may take ``seconds``."""
    deadline = _DEADLINE.get()
    if deadline is None:
        return seconds
    left = deadline - time.monotonic()
    if left <= 0:
        raise ServiceUnavailable("the cloud has not answered in time")
    return min(seconds, left)


def create_breakers(cloud: str) -> Mapping[str, CircuitBreaker]:
    """Return the circuit breakers of the services of one cloud."""
    return {service: CircuitBreaker(f"{name} of the cloud {cloud}", _SPARED) for service, name in NAMES.items()}


def _error_of(service: str, response: Any) -> Exception:
    status = response.status_code
    error_type, message = _message(response)
    pause = _retry_after(response)
    if status == 429 or (status == 413 and pause):
        reason = f"{NAMES[service]} limits the number of requests: {message}"
        return RetryLater(reason, max(pause, 1.0), is_rejected=True)
    request_id = response.headers.get("x-openstack-request-id")
    if service == NETWORK:
        kind = f"{error_type}Client" if error_type else _KINDS.get(status, "NeutronClientException")
        text = f"{message}\nNeutron server returns request_ids: ['{request_id}']" if request_id else message
    else:
        kind = _KINDS.get(status, "ClientException")
        text = f"{message} (HTTP {status})" + (f" (Request-ID: {request_id})" if request_id else "")
    return CloudRefused(text, kind, status, error_type)


def _message(response: Any) -> tuple[str, str]:
    """Return the type and the message of an error, in the form of any service."""
    try:
        body = response.json()
    except ValueError:
        body = None
    error: Any = next(iter(body.values()), None) if isinstance(body, dict) and len(body) == 1 else body
    if isinstance(error, dict):
        text = error.get("message") or error.get("description") or error.get("title") or ""
        detail = error.get("detail") or ""
        return str(error.get("type") or ""), " ".join(filter(None, (str(text), str(detail))))
    if isinstance(error, str):
        return "", error
    place = urlsplit(response.url)
    return "", f"{response.reason or 'Error'} from {place.path}"


def _retry_after(response: Any) -> float:
    """The pause in seconds that a response asks for; 0 without one."""
    try:
        return float(response.headers.get("Retry-After") or 0)
    except ValueError:  # a date
        return 5.0
