"""How Stoker is let in by a Swift or a Zaqar."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stoker.external.peer import PeerAway, PeerRefused

if TYPE_CHECKING:
    import httpx2


#: Seconds that a login may take.
_PATIENCE = 5


class SwiftsOwn:
    """Where Swift itself knows its users (tempauth and its kin): a token for a user and a key."""

    def __init__(self, auth_url: str, user: str, key: str) -> None:
        self._auth_url = auth_url
        self._said = {"X-Storage-User": user, "X-Storage-Pass": key, "X-Auth-User": user, "X-Auth-Key": key}
        self._token: str | None = None

    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        token = self._token
        if token is None:
            answer = http.get(self._auth_url, headers=self._said)
            if answer.status_code >= 500:
                raise PeerAway(f"{self._auth_url} answered {answer.status_code}")
            token = answer.headers.get("X-Auth-Token")
            if answer.status_code >= 300 or not token:
                raise PeerRefused(f"{self._auth_url} refused the login: {answer.status_code}", answer.status_code)
            self._token = token
        return {"X-Auth-Token": token}

    def forget(self, project_id: str) -> None:
        self._token = None


class Cloud:
    """An entry of clouds.yaml, whatever kind of credentials it has."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._session: Any = None
        self._region: str | None = None

    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        with self._logged_in() as session:
            return {"X-Auth-Token": session.get_token()}

    def endpoint(self, service: str) -> str:
        """In the entry's own region. Raises PeerAway, also where its catalog has none."""
        with self._logged_in() as session:
            found: str | None = session.get_endpoint(service_type=service, region_name=self._region)
        if not found:
            raise PeerAway(f"the cloud {self._name} has no {service} service in its region {self._region}")
        return found

    def forget(self, project_id: str) -> None:
        with self._lock:
            if self._session is not None:
                self._session.invalidate()

    @contextmanager
    def _logged_in(self) -> Iterator[Any]:
        """The one session, opened at first use and held by one thread at a time. Raises PeerAway."""
        # Late: it takes 0.2 s, and only those who name a cloud need it.
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
            raise PeerAway(f"cannot log in to the cloud {self._name}: {error}") from None


class Ours:
    """For a Zaqar that trusts Stoker's identity, or trusts whoever asks: a token of Stoker's own, for each project."""

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
