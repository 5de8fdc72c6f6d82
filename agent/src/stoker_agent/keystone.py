"""A Keystone session: one cached token, and the service endpoints of its catalog."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from stoker_agent.web import ANSWER, SECONDS, Answer, Limit, Unreachable, Web, host_of

#: The agent renews a token this long before it expires.
_MARGIN_SECONDS = 60.0
#: The assumed lifetime of a token without valid times.
_LIFE_SECONDS = 600.0


#: The required keys of a login.
LOGIN = ("auth_url", "user_id", "password", "project_id")


class LoginRejected(Unreachable):
    """Keystone rejects the user or the password."""


class Login(NamedTuple):
    """The credentials of one user in one project."""

    auth_url: str
    user_id: str
    password: str
    project_id: str
    region: Optional[str] = None

    @classmethod
    def of(cls, inputs: Mapping[str, Any], prefix: str = "") -> Login:
        """
        Read a login from a section of os-collect-config, or from inputs with the prefix ``deploy_``. Raises KeyError.
        """
        region = inputs.get(f"{prefix}region_name")
        url, user, password, project = (str(inputs[f"{prefix}{name}"]) for name in LOGIN)
        return cls(url, user, password, project, str(region) if region else None)


class _Token(NamedTuple):
    text: str
    until: float
    catalog: List[Any]


class Session:
    """
    Calls OpenStack services with a cached token. Not safe for use by several threads.

    ``seconds`` limits each call.
    """

    def __init__(self, web: Web, login: Login, seconds: float = SECONDS) -> None:
        self._web = web
        self._login = login
        self._seconds = seconds
        #: Keystone's host, for log lines and for the retry pause of this target.
        self.place = host_of(login.auth_url)
        self.project_id = login.project_id
        self._token: Optional[_Token] = None

    def call(
        self,
        service: str,
        verb: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        limit: Limit = ANSWER,
    ) -> Answer:
        """
        Send a request to ``path`` below the public endpoint of ``service``. Renew a rejected token once.

        Raises Unreachable, or its subclass LoginRejected.
        """
        kept = self._token is not None and time.monotonic() < self._token.until
        if not kept:
            self._token = self._log_in()
        token = self._token
        assert token is not None
        url = _endpoint(token.catalog, service, self._login.region).rstrip("/") + path
        sent = {"Accept": "application/json", **(headers or {}), "X-Auth-Token": token.text}
        answer = self._web.call(verb, url, body, sent, self._seconds, limit)
        if answer.status == 401:
            self._token = None
            if kept:  # the token was revoked, or this machine's clock differs from the server's
                return self.call(service, verb, path, body, headers, limit)
        return answer

    def _log_in(self) -> _Token:
        login = self._login
        request = {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {"user": {"id": login.user_id, "password": login.password}},
                },
                "scope": {"project": {"id": login.project_id}},
            }
        }
        answer = self._web.call(
            "POST",
            f"{_version_3(login.auth_url)}/auth/tokens",
            json.dumps(request).encode(),
            {"Content-Type": "application/json", "Accept": "application/json"},
            self._seconds,
        )
        if answer.status in (400, 401, 403):
            raise LoginRejected(f"the login is refused: {answer.summary()}")
        try:
            token = answer.json()["token"]
            return _Token(answer.headers["x-subject-token"], time.monotonic() + _life(token), token["catalog"])
        except (ValueError, KeyError, TypeError):
            raise Unreachable(f"no token from the identity service: {answer.summary()}") from None


def _version_3(auth_url: str) -> str:
    """Return the URL of Keystone's version 3. ``auth_url`` may end with /v3, with /v2.0 or without a version."""
    plain = auth_url.rstrip("/")
    if plain.endswith("/v3"):
        return plain
    return (plain[: -len("/v2.0")] if plain.endswith("/v2.0") else plain) + "/v3"


def _life(token: Mapping[str, Any]) -> float:
    """Return the usable seconds of a token, from the server's times only, because the local clock may be wrong."""
    try:
        issued, ends = (
            datetime.strptime(token[name][:19], "%Y-%m-%dT%H:%M:%S") for name in ("issued_at", "expires_at")
        )
    except (KeyError, TypeError, ValueError):
        return _LIFE_SECONDS
    life = (ends - issued).total_seconds()
    return max(0.0, life - min(_MARGIN_SECONDS, life / 2))


def _endpoint(catalog: List[Any], service: str, region: Optional[str]) -> str:
    """Return the public endpoint of the service, in ``region`` if the catalog has one. Raises Unreachable."""
    endpoints: List[Dict[str, Any]] = []
    for entry in catalog:
        if isinstance(entry, dict) and entry.get("type") == service:
            endpoints += [
                one for one in entry.get("endpoints") or () if one.get("interface") == "public" and one.get("url")
            ]
    here = [one for one in endpoints if region in (one.get("region_id"), one.get("region"))]
    if not here and not endpoints:
        raise Unreachable(f"the catalog has no public endpoint of the service {service}")
    return str((here or endpoints)[0]["url"])
