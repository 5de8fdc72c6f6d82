"""A login at Keystone: one token, kept until it ends or is refused, and the services that its catalog names."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from stoker_agent.web import SECONDS, Answer, Unreachable, Web, host_of

#: Before its end a token is not used any more.
_MARGIN_SECONDS = 60.0
#: For a token that does not say how long it is good.
_LIFE_SECONDS = 600.0


class NotAdmitted(Unreachable):
    """Keystone does not know this user, or not this password."""


class Login(NamedTuple):
    auth_url: str
    user_id: str
    password: str
    project_id: str
    region: Optional[str] = None

    @classmethod
    def of(cls, said: Mapping[str, Any], prefix: str = "") -> Login:
        """From a section of os-collect-config, or from ``deploy_`` inputs. Raises KeyError."""
        region = said.get(f"{prefix}region_name")
        url, user, password, project = (
            str(said[f"{prefix}{name}"]) for name in ("auth_url", "user_id", "password", "project_id")
        )
        return cls(url, user, password, project, str(region) if region else None)


class _Token(NamedTuple):
    text: str
    until: float
    catalog: List[Any]


class Session:
    """Not to be shared between threads."""

    def __init__(self, web: Web, login: Login, seconds: float = SECONDS) -> None:
        self._web = web
        self._login = login
        self._seconds = seconds
        #: For logs, and to know that two logins are at the same place.
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
    ) -> Answer:
        """Below a service's public endpoint. Raises Unreachable, of which NotAdmitted is one."""
        kept = self._token is not None and time.monotonic() < self._token.until
        if not kept:
            self._token = self._log_in()
        token = self._token
        assert token is not None
        url = _endpoint(token.catalog, service, self._login.region).rstrip("/") + path
        sent = {"Accept": "application/json", **(headers or {}), "X-Auth-Token": token.text}
        answer = self._web.call(verb, url, body, sent, self._seconds)
        if answer.status == 401:
            self._token = None
            if kept:  # it was revoked, or the server's clock goes otherwise
                return self.call(service, verb, path, body, headers)
        return answer

    def _log_in(self) -> _Token:
        login = self._login
        said = {
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
            json.dumps(said).encode(),
            {"Content-Type": "application/json", "Accept": "application/json"},
            self._seconds,
        )
        if answer.status in (400, 401, 403):
            raise NotAdmitted(f"the login is refused: {answer.said()}")
        try:
            token = answer.json()["token"]
            return _Token(answer.headers["x-subject-token"], time.monotonic() + _life(token), token["catalog"])
        except (ValueError, KeyError, TypeError):
            raise Unreachable(f"no token from the identity service: {answer.said()}") from None


def _version_3(auth_url: str) -> str:
    """As it is given to clients: with the version, with one that is too old, or without any."""
    plain = auth_url.rstrip("/")
    if plain.endswith("/v3"):
        return plain
    return (plain[: -len("/v2.0")] if plain.endswith("/v2.0") else plain) + "/v3"


def _life(token: Mapping[str, Any]) -> float:
    """Seconds that it may be used for: told by the server's own clock, as ours may be wrong."""
    try:
        issued, ends = (
            datetime.strptime(token[name][:19], "%Y-%m-%dT%H:%M:%S") for name in ("issued_at", "expires_at")
        )
    except (KeyError, TypeError, ValueError):
        return _LIFE_SECONDS
    life = (ends - issued).total_seconds()
    return max(0.0, life - min(_MARGIN_SECONDS, life / 2))


def _endpoint(catalog: List[Any], service: str, region: Optional[str]) -> str:
    """The public one, of this region if it is there. Raises Unreachable."""
    found: List[Dict[str, Any]] = []
    for each in catalog:
        if isinstance(each, dict) and each.get("type") == service:
            found += [one for one in each.get("endpoints") or () if one.get("interface") == "public" and one.get("url")]
    here = [one for one in found if region in (one.get("region_id"), one.get("region"))]
    if not here and not found:
        raise Unreachable(f"the catalog has no public endpoint of the service {service}")
    return str((here or found)[0]["url"])
