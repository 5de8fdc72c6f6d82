"""
Logins at external services that are no Keystone's: with Stoker's own tokens, and with the users of a Swift.

This module is imported late: it needs keystoneauth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from stoker import cloud_entries
from stoker.failures import ServiceRejected, ServiceUnavailable

#: Seconds that a service may take to answer a request.
_PATIENCE = 5.0
#: Part of the URL of a login that Swift itself provides.
_OWN_LOGIN = "/auth/v1"


def open_session(login: BaseAuthPlugin | None = None, ca_file: Path | None = None) -> Session:
    """Return a session for a service. ``ca_file`` verifies the service if the system does not trust its CA."""
    return Session(login, verify=str(ca_file) if ca_file else True, timeout=_PATIENCE)


def open_swift_session(name: str, setting: str) -> Session:
    """
    Return a session with the login of an entry of clouds.yaml: at a Keystone, or at Swift itself (tempauth and
    similar).

    Raises Invalid with the name of the setting that names the entry.
    """
    auth = cloud_entries.read(name, setting).get("auth") or {}
    if _OWN_LOGIN not in str(auth.get("auth_url")):
        return cloud_entries.open_session(name, setting)
    return open_session(_SwiftUser(auth))


class _SwiftUser(BaseAuthPlugin):  # type: ignore[misc]  # keystoneauth has no types
    """The login of a user of Swift itself, who has a key. ``auth``: that of the entry."""

    def __init__(self, auth: Mapping[str, Any]) -> None:
        super().__init__()
        self._url = str(auth.get("auth_url"))
        user, key = str(auth.get("username")), str(auth.get("password"))
        self._headers = {"X-Storage-User": user, "X-Storage-Pass": key, "X-Auth-User": user, "X-Auth-Key": key}
        self._token: str | None = None

    def get_token(self, session: Session) -> str:
        if self._token is None:
            answer = session.get(self._url, headers=self._headers, authenticated=False, raise_exc=False, log=False)
            if answer.status_code >= 500:
                raise ServiceUnavailable(f"{self._url} answered {answer.status_code}")
            token: str | None = answer.headers.get("X-Auth-Token")
            if answer.status_code >= 300 or not token:
                raise ServiceRejected(f"{self._url} refused the login: {answer.status_code}", answer.status_code)
            self._token = token
        return self._token

    def invalidate(self) -> bool:
        self._token = None
        return True


def log_in_projects(token_of: Callable[[str], str | None]) -> Callable[[str], BaseAuthPlugin]:
    """
    Return the login of each project at this site, or at a Zaqar that accepts Stoker's tokens or any client.

    ``token_of`` returns one of Stoker's own tokens for a project.
    """
    return cache(partial(_ProjectLogin, token_of))


class _ProjectLogin(BaseAuthPlugin):  # type: ignore[misc]  # keystoneauth has no types
    def __init__(self, token_of: Callable[[str], str | None], project_id: str) -> None:
        super().__init__()
        self._project_id, self._token_of = project_id, token_of
        self._headers: dict[str, str] | None = None

    def get_headers(self, session: Session) -> dict[str, str]:
        headers = self._headers
        if headers is None:
            token = self._token_of(self._project_id)
            headers = {"X-Project-Id": self._project_id, **({"X-Auth-Token": token} if token else {})}
            self._headers = headers
        return headers

    def invalidate(self) -> bool:
        self._headers = None
        return True
