"""The one door to the service: paths and bodies in, decoded JSON or one of our errors out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from keystoneauth1 import exceptions as ksa
from keystoneauth1.adapter import Adapter

from stoker_client import faults
from stoker_client.errors import BadAnswer

# A watch outlives a restart of the server: about half a minute of refused connections is waited out.
PATIENCE: dict[str, Any] = {
    "connect_retries": 6,
    "status_code_retries": 3,
    "retriable_status_codes": [502, 503, 504],
}
TIMEOUT = 300.0


class Wire:
    """A logged-in connection to one orchestration endpoint."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, patient: bool = False, wait: float = 0) -> Any:
        """Read ``path``; ``patient`` waits out a restarting server, ``wait`` is how long the server may hold on.

        The query goes into the address: as separate parameters it would be repeated when a redirect is followed.
        """
        known = {key: value for key, value in (query or {}).items() if value is not None}
        address = f"{path}?{urlencode(known)}" if known else path
        return self._call("GET", address, timeout=TIMEOUT + wait, **(PATIENCE if patient else {}))

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Write: POST, PUT, PATCH or DELETE."""
        more = {} if body is None else {"json": body}
        return self._call(method, path, timeout=TIMEOUT, **more)

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
        try:
            answer = self._adapter.request(
                path, method, raise_exc=False, headers={"Accept": "application/json"}, **more
            )
        except ksa.ClientException as problem:
            raise faults.raised(problem, self._address()) from problem
        if answer.status_code >= 400:
            raise faults.answered(answer.status_code, answer.text, path)
        return self._decoded(answer)

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
