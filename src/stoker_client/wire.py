"""The one door to the service: paths and bodies in, decoded JSON or one of our errors out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlencode

from keystoneauth1 import exceptions as ksa
from keystoneauth1.adapter import Adapter
from requests import RequestException

from stoker_client import faults, sse
from stoker_client.errors import BadAnswer, Broken, NoEvents

# A watch outlives a restart of the server: about half a minute of refused connections is waited out.
PATIENCE: dict[str, Any] = {
    "connect_retries": 6,
    "status_code_retries": 3,
    "retriable_status_codes": [502, 503, 504],
}
CONNECT = 5.0  # seconds: a host that takes no connection by then is away, and each of the repetitions finds that out
TIMEOUT = 300.0  # between two bytes of an answer
HELD = 30.0  # an answer that the server may hold on to comes so long after that at the latest
SILENCE = 60.0  # a stream says something every quarter of a minute; one that does not is no longer there


class Wire:
    """A logged-in connection to one orchestration endpoint."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, patient: bool = False, wait: float = 0) -> Any:
        """Read ``path``; ``patient`` waits out a restarting server, ``wait`` is how long the server may hold on.

        The query goes into the address: as separate parameters it would be repeated when a redirect is followed.
        """
        most = wait + HELD if wait else TIMEOUT
        return self._call("GET", _address(path, query), timeout=(CONNECT, most), **(PATIENCE if patient else {}))

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Write: POST, PUT, PATCH or DELETE. Sent once: what is not answered may have been done all the same."""
        more = {} if body is None else {"json": body}
        return self._call(method, path, timeout=(CONNECT, TIMEOUT), connect_retries=0, **more)

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, Any] | None = None, *, last_id: str = ""
    ) -> Iterator[Iterator[bytes]]:
        """Server-sent events as bytes, in pieces as they come (``events.following`` makes sense of them). Patient.

        Raises NoEvents when the service answers with something else, Broken when the connection ends in the middle.
        """
        # Whoever compresses a stream on the way may also hold it back.
        headers = {"Accept": sse.MEDIA_TYPE, "Accept-Encoding": "identity", "Cache-Control": "no-cache"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        silence = (CONNECT, SILENCE)
        answer = self._asked("GET", _address(path, query), headers, timeout=silence, stream=True, **PATIENCE)
        with closing(answer):
            if sse.MEDIA_TYPE not in answer.headers.get("Content-Type", ""):
                raise NoEvents(f"{self._address()} does not tell events of {path}: is it an older one?")
            yield self._pieces(answer)

    def to(self, service: str) -> Wire:
        """Another service of the same cloud, with the same login."""
        known = self._adapter
        return Wire(
            Adapter(known.session, service_type=service, interface=known.interface, region_name=known.region_name)
        )

    @property
    def user_id(self) -> str:
        """Of whoever is logged in."""
        try:
            return str(self._adapter.get_user_id())
        except ksa.ClientException as problem:
            raise faults.raised(problem, self._address()) from problem

    def close(self) -> None:
        """Let go of the connections."""
        self._adapter.session.session.close()

    def _call(self, method: str, path: str, **more: Any) -> Any:
        return self._decoded(self._asked(method, path, {"Accept": "application/json"}, **more))

    def _asked(self, method: str, path: str, headers: Mapping[str, str], **more: Any) -> Any:
        try:
            answer = self._adapter.request(path, method, raise_exc=False, headers=dict(headers), **more)
        except ksa.ClientException as problem:
            raise faults.raised(problem, self._address()) from problem
        if answer.status_code >= 400:
            raise faults.answered(answer.status_code, answer.text, path)
        return answer

    def _pieces(self, answer: Any) -> Iterator[bytes]:
        """As they arrive: chunks are passed on whole; without chunks, more than a byte would be waited for."""
        try:
            yield from answer.iter_content(None if answer.raw.chunked else 1)
        except RequestException as problem:
            raise Broken(f"{self._address()} broke the connection: {type(problem).__name__}") from problem

    def _decoded(self, answer: Any) -> Any:
        """The JSON of an answer. Heat answers some writes with a page of HTML that means nothing."""
        if "json" not in answer.headers.get("Content-Type", ""):
            return None
        try:
            return answer.json()
        except ValueError as problem:
            raise BadAnswer(f"{self._address()} announces JSON and sends something else") from problem

    def _address(self) -> str:
        override = self._adapter.endpoint_override
        return faults.origin(str(override or getattr(self._adapter.session.auth, "auth_url", None) or "the service"))


def _address(path: str, query: Mapping[str, Any] | None) -> str:
    known = {key: value for key, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(known)}" if known else path
