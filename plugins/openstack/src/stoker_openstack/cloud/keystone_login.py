"""Logins at Keystone: with Stoker's own user, and with the token of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from stoker import cloud_entries
from stoker.failures import ServiceUnavailable
from stoker.model.errors import Unauthorized, Unavailable
from stoker.settings import Settings
from stoker_openstack.cloud.client import Access

T = TypeVar("T")
#: Keystone's names of the logins with which a user has given a program some of the user's rights.
_DELEGATED = {"application_credential", "ec2credential", "oauth1"}


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """The login of Stoker's own user at Keystone, without a project."""

    auth_url: str
    names: Mapping[str, str]
    project: Mapping[str, str]
    #: Seconds that Keystone may take to answer a request.
    timeout: float
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The user of a request, as Keystone describes the request's token. ``roles``: ids by names in lower case."""

    token: str = field(repr=False)
    user_id: str
    user_name: str
    project_id: str | None
    roles: Mapping[str, str]
    methods: frozenset[str]
    #: The name of the application credential of the login.
    credential_name: str | None
    #: The application credential may create neither trusts nor application credentials.
    is_restricted: bool
    #: The trust of the login.
    trust_id: str | None
    #: keystoneauth's description of the token.
    access: Any = field(repr=False)

    @property
    def is_delegated(self) -> bool:
        """Whether the login is not the user's own."""
        return bool(self.methods & _DELEGATED)


class KeystoneLogin:
    """Opens sessions at the Keystone of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.url = f"{settings.identity_url}/v3"

    @property
    def region(self) -> str | None:
        """The region of the services that stacks use; None: any."""
        return self._user.region

    def open_own(self, scope: Mapping[str, str] | None = None, *, in_project: bool = False) -> Any:
        """Return a session of Stoker's own user: of a trust, in Stoker's own project, or without a project."""
        from keystoneauth1.identity import v3

        user = self._user
        options: dict[str, Any] = {**user.names, **(scope or (user.project if in_project else {"unscoped": True}))}
        return self.open_session(v3.Password(auth_url=user.auth_url, **options))

    def open_session(self, auth: Any) -> Any:
        """Return a session that logs in with a plugin of keystoneauth."""
        from keystoneauth1.session import Session

        return Session(auth=auth, timeout=self._user.timeout)

    def is_own_valid(self) -> bool:
        """Return whether Keystone accepts Stoker's own login."""
        from keystoneauth1 import exceptions

        try:
            return bool(self.open_own().get_token())
        except exceptions.ClientException:
            return False

    def ask_own(self, ask: Callable[[Any], T], *, in_project: bool = False) -> T:
        """Return what ``ask`` returns for a session of Stoker's own user. Raises Unavailable."""
        from keystoneauth1 import exceptions

        try:
            return ask(self.open_own(in_project=in_project))
        except exceptions.ClientException as error:
            raise Unavailable(f"Keystone does not accept Stoker's own login: {error}") from None

    def read_token(self, token: str) -> Caller:
        """Return the user of a token of a request. Raises Unauthorized and Unavailable."""
        from keystoneauth1 import access

        response = self.send(token, "GET", "/auth/tokens", headers={"X-Subject-Token": token})
        if response.status_code == 403:  # by default, Keystone does not describe the token of a trust to its bearer
            own = self.ask_own(lambda session: session.get_token(), in_project=True)
            response = self.send(own, "GET", "/auth/tokens", headers={"X-Subject-Token": token})
        if response.status_code in (401, 403, 404):
            raise Unauthorized("The token is not valid, or has expired.")
        try:
            body = response.json()["token"]
            credential = body.get("application_credential") or {}
            return Caller(
                token=token,
                user_id=body["user"]["id"],
                user_name=body["user"]["name"],
                project_id=(body.get("project") or {}).get("id"),
                roles={role["name"].lower(): role["id"] for role in body.get("roles") or ()},
                methods=frozenset(body.get("methods") or ()),
                credential_name=credential.get("name"),
                is_restricted=bool(credential.get("restricted")),
                trust_id=(body.get("OS-TRUST:trust") or {}).get("id"),
                access=access.create(resp=response, auth_token=token),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            text = f"Keystone answered {response.status_code} to a question about a token; try again later"
            raise Unavailable(text) from None

    def open_token(self, token: str) -> Access:
        """Return the access to the cloud that a token grants. Raises ServiceUnavailable."""
        from keystoneauth1.identity.access import AccessInfoPlugin

        try:
            caller = self.read_token(token)
        except (Unauthorized, Unavailable) as error:
            raise ServiceUnavailable(error.message) from None
        return Access(self.open_session(AccessInfoPlugin(caller.access, auth_url=self.url)), self.region)

    def send(self, token: str, verb: str, path: str, **options: Any) -> Any:
        """Send a request with the token of a request and return the response. Raises Unavailable."""
        from keystoneauth1 import exceptions

        headers = {"X-Auth-Token": token, **options.pop("headers", {})}
        try:
            response = self.open_session(None).request(
                f"{self.url}{path}", verb, headers=headers, authenticated=False, raise_exc=False, log=False, **options
            )
        except exceptions.ClientException as error:
            raise Unavailable(f"Keystone does not answer: {error}") from None
        if response.status_code >= 500:
            raise Unavailable(f"Keystone answered {response.status_code}; try again later")
        return response

    @cached_property
    def _user(self) -> ServiceUser:
        return _user_of_entry(self._settings.keystone_cloud)


def message_of(response: Any) -> str:
    """Return Keystone's sentence in a response that refuses a request."""
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = str(response.reason or "no reason")
    return f"{' '.join(text.split())} ({response.status_code})"


def _user_of_entry(name: str) -> ServiceUser:
    entry = cloud_entries.read(name, "keystone_cloud")
    auth: dict[str, str] = dict(entry["auth"])

    def values(*keys: str) -> dict[str, str]:
        return {key: auth[key] for key in keys if auth.get(key)}

    user_keys: Sequence[str] = ("username", "user_id", "password", "user_domain_name", "user_domain_id")
    project = values("project_name", "project_id", "project_domain_name", "project_domain_id")
    return ServiceUser(
        auth["auth_url"], values(*user_keys), project, entry["api_timeout"], entry.get("region_name") or None
    )
