"""The HTTP layer of the client: sends JSON bodies, and returns decoded JSON or raises the client's exceptions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlencode

from keystoneauth1 import exceptions as ksa
from keystoneauth1.adapter import Adapter
from requests import RequestException

from stoker_client import faults, updates
from stoker_client.errors import BadAnswer, Broken

# A watch survives a restart of the server: about half a minute of refused connections.
PATIENCE: dict[str, Any] = {
    "connect_retries": 6,
    "status_code_retries": 3,
    "retriable_status_codes": [502, 503, 504],
}
CONNECT = 5.0  # seconds; applies to each attempt, because an unreachable host accepts no connection
TIMEOUT = 300.0  # seconds between two bytes of an answer
_JSON = {"Accept": "application/json"}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
SILENCE = 60.0  # seconds; the service sends a keep-alive every 15 seconds, so a silent stream is dead


class Wire:
    """A logged-in connection to one orchestration endpoint."""

    def __init__(self, adapter: Adapter, on_unreachable: Callable[[], None] | None = None) -> None:
        """Create a connection. ``on_unreachable`` is called without an answer, because the address may be outdated."""
        self._adapter = adapter
        self._on_unreachable = on_unreachable
        #: Called with each warning that the service attaches to a successful answer.
        self.on_warning: Callable[[str], None] | None = None

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, patient: bool = False) -> Any:
        """
        Read ``path``.

        ``patient`` waits for a service that restarts. The query is part of the URL, because separate parameters would
        be repeated after a redirect.
        """
        more = PATIENCE if patient else {}
        return self._decode(self._request("GET", _address(path, query), _JSON, timeout=(CONNECT, TIMEOUT), **more))

    def get_bytes(self, path: str, query: Mapping[str, Any] | None = None) -> bytes:
        """Read ``path``, whose content is not JSON."""
        answer = self._request("GET", _address(path, query), {"Accept": "*/*"}, timeout=(CONNECT, TIMEOUT))
        return bytes(answer.content)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """
        Send a POST, PUT, PATCH or DELETE once. Without an answer, the service may still have executed the request.
        """
        return self.begin(method, path, body)[0]

    def begin(self, method: str, path: str, body: Any = None) -> tuple[Any, str | None]:
        """Send a request that begins an operation. Return the answer and the operation's id; Heat sends none."""
        more = {} if body is None else {"json": body}
        answer = self._request(method, path, _JSON, timeout=(CONNECT, TIMEOUT), connect_retries=0, **more)
        return self._decode(answer), answer.headers.get("Stoker-Operation")

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, Any] | None = None, *, last_id: str = ""
    ) -> Iterator[Iterator[bytes]]:
        """
        Open a stream of server-sent events and yield its bytes (``updates.follow`` parses them). Waits for a restart.

        Raises BadAnswer if the answer is not an event stream, and Broken if the connection ends early.
        """
        # A proxy that compresses the stream may also buffer it.
        headers = {"Accept": updates.MEDIA_TYPE, "Accept-Encoding": "identity", "Cache-Control": "no-cache"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        silence = (CONNECT, SILENCE)
        answer = self._request("GET", _address(path, query), headers, timeout=silence, stream=True, **PATIENCE)
        with closing(answer):
            if updates.MEDIA_TYPE not in answer.headers.get("Content-Type", ""):
                raise BadAnswer(f"{self._address()} sends no events of {path}: is it an older version?")
            yield self._pieces(answer)

    def to(self, service: str) -> Wire:
        """Return a connection to another service of the same cloud, with the same login."""
        adapter = self._adapter
        return Wire(
            Adapter(adapter.session, service_type=service, interface=adapter.interface, region_name=adapter.region_name)
        )

    @property
    def root_url(self) -> str:
        """The service's URL without the API version and the project."""
        endpoint = self._read_login(lambda: self._adapter.get_endpoint() or self._address())
        return endpoint.partition("/v1")[0].rstrip("/")

    @property
    def user_id(self) -> str:
        """The id of the logged-in user."""
        return self._read_login(self._adapter.get_user_id)

    @property
    def project_id(self) -> str:
        """The id of the project of the login."""
        return self._read_login(self._adapter.get_project_id)

    def _read_login(self, read: Callable[[], Any]) -> str:
        try:
            return str(read())
        except ksa.ClientException as problem:
            raise faults.error_of_exception(problem, self._address()) from problem

    def close(self) -> None:
        """Close all connections."""
        self._adapter.session.session.close()

    def _request(self, method: str, path: str, headers: Mapping[str, str], **more: Any) -> Any:
        try:
            answer = self._adapter.request(path, method, raise_exc=False, headers=dict(headers), **more)
        except ksa.ClientException as problem:
            if self._on_unreachable is not None and isinstance(problem, ksa.ConnectionError):
                self._on_unreachable()
            raise faults.error_of_exception(problem, self._address()) from problem
        if answer.status_code >= 400:
            raise faults.error_of_answer(answer.status_code, answer.text, path)
        if self.on_warning is not None:
            for warning in warnings_in(answer.headers.get("Warning", "")):
                self.on_warning(warning)
        return answer

    def _pieces(self, answer: Any) -> Iterator[bytes]:
        """Yield data as it arrives. Without chunked encoding, a larger read would block until it is complete."""
        try:
            yield from answer.iter_content(None if answer.raw.chunked else 1)
        except RequestException as problem:
            raise Broken(f"{self._address()} broke the connection: {type(problem).__name__}") from problem

    def _decode(self, answer: Any) -> Any:
        """Decode the JSON of an answer. Return None for other content, such as the HTML in some answers of Heat."""
        if "json" not in answer.headers.get("Content-Type", ""):
            return None
        try:
            return answer.json()
        except ValueError as problem:
            raise BadAnswer(f"{self._address()} announces JSON and sends something else") from problem

    def _address(self) -> str:
        override = self._adapter.endpoint_override
        return faults.origin(str(override or getattr(self._adapter.session.auth, "auth_url", None) or "the service"))


def warnings_in(header: str) -> Iterator[str]:
    """Yield the texts of an HTTP ``Warning`` header, whose items have a code, an agent and a quoted text."""
    for quoted in _QUOTED.findall(header):
        try:
            yield json.loads(quoted)
        except ValueError:
            yield quoted.strip('"')  # the quoting differs from JSON's


def _address(path: str, query: Mapping[str, Any] | None) -> str:
    parameters = {key: value for key, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path
