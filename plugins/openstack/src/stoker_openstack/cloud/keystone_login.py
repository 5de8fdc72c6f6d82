"""Logins at Keystone: with Stoker's own user, and with the token of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from stoker import cloud_entries
from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.model.errors import Unauthorized, Unavailable
from stoker.service_client import ServiceClient
from stoker.settings import Settings
from stoker_openstack.cloud.client import Access

T = TypeVar("T")
#: Keystone's names of the logins with which a user has given a program some of the user's rights.
_DELEGATED = {"application_credential", "ec2credential", "oauth1"}
#: Members of an entry of clouds.yaml that name its user, and its project.
_USER = ("username", "user_id", "password", "user_domain_name", "user_domain_id")
_PROJECT = ("project_name", "project_id", "project_domain_name", "project_domain_id")


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
        return self._entry.get("region_name") or None

    def open_own(self, scope: Mapping[str, str] | None = None, *, in_project: bool = False) -> Any:
        """Return a session of Stoker's own user: of a trust, in Stoker's own project, or without a project."""
        from keystoneauth1.identity import v3

        auth: Mapping[str, str] = self._entry["auth"]
        user, project = ({key: auth[key] for key in keys if auth.get(key)} for keys in (_USER, _PROJECT))
        options: dict[str, Any] = {**user, **(scope or (project if in_project else {"unscoped": True}))}
        return self.open_session(v3.Password(auth_url=auth["auth_url"], **options))

    def open_session(self, auth: Any) -> Any:
        """Return a session that logs in with a plugin of keystoneauth."""
        from keystoneauth1.session import Session

        return Session(auth=auth, timeout=self._entry["api_timeout"])

    def open_service(self, session: Any) -> ServiceClient:
        """Return the client of Keystone with a session."""
        return ServiceClient(self.url, lambda: session)

    def is_own_valid(self) -> bool:
        """Return whether Keystone accepts Stoker's own login."""
        try:
            return bool(self.ask_own(lambda session: session.get_token()))
        except Unavailable:
            return False

    def ask_own(self, ask: Callable[[Any], T], *, in_project: bool = False) -> T:
        """Return what ``ask`` returns for a session of Stoker's own user. Raises Unavailable."""
        try:
            return self.open_service(self.open_own(in_project=in_project)).call(ask)
        except (ServiceUnavailable, ServiceRejected) as error:
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
        headers = {"X-Auth-Token": token, **options.pop("headers", {})}
        service = self.open_service(self.open_session(None))
        try:
            return service.call(
                lambda session: service.request(session, verb, path, headers=headers, authenticated=False, **options)
            )
        except ServiceUnavailable as error:
            raise Unavailable(f"Keystone does not answer: {error}; try again later") from None

    @cached_property
    def _entry(self) -> Mapping[str, Any]:
        return cloud_entries.read(self._settings.keystone_cloud, "keystone_cloud")


def message_of(response: Any) -> str:
    """Return Keystone's sentence in a response that refuses a request."""
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = str(response.reason or "no reason")
    return f"{' '.join(text.split())} ({response.status_code})"
