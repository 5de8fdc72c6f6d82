"""
Requests to Keystone: logins with Stoker's own user and with the token of a request, and the two ways of acting for
users: trusts of Stoker's own user, and application credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlencode

import structlog
from msgspec.structs import replace

from stoker import cloud_entries
from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.model.errors import Unauthorized, Unavailable
from stoker.service_client import ServiceClient, check_status
from stoker.settings import Settings
from stoker_openstack.cloud.client import Access
from stoker_openstack.cloud.markers import Marker, marker_of
from stoker_openstack.store.delegations import CloudCredential

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
    #: Whether the login is not the user's own.
    is_delegated: bool
    #: The name of the application credential of the login.
    credential_name: str | None
    #: The application credential may create neither trusts nor application credentials.
    is_restricted: bool
    #: The trust of the login.
    trust_id: str | None
    #: keystoneauth's description of the token.
    access: Any = field(repr=False)


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
                is_delegated=not _DELEGATED.isdisjoint(body.get("methods") or ()),
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


class Refused(Exception):
    """Keystone refuses one way of delegation; the message says why."""


def created(response: Any, title: str) -> Any:
    """Return the body of a response that creates an object, called ``title``. Raises Refused with Keystone's reason."""
    if response.status_code == 201:
        return response.json()
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = str(response.reason or "no reason")
    raise Refused(f"no {title}: {' '.join(text.split())} ({response.status_code})")


class Way:
    """One way of acting for users: creates, uses and deletes credentials. ``site``: the public id of this site."""

    #: What people call the credentials.
    title: str

    def __init__(self, login: KeystoneLogin, site: str) -> None:
        self._login = login
        self._site = site

    def create(self, caller: Caller, credential: CloudCredential) -> CloudCredential:
        """Request a credential of the caller; return it as Keystone has created it. Raises Refused and Unavailable."""
        raise NotImplementedError

    def open(self, credential: CloudCredential) -> Access:
        """Return the access to the cloud that a credential grants."""
        raise NotImplementedError

    def delete(self, credential: CloudCredential) -> str | None:
        """Delete a credential; return why it remains, None if it does not. Raises ServiceUnavailable."""
        raise NotImplementedError

    def _mark(self, credential: CloudCredential) -> str:
        """Return the text by which Keystone shows whose credential it is."""
        return Marker(self._site, credential.id).text


_PATH = "/OS-TRUST/trusts"
_log = structlog.get_logger("stoker.backends")


class KeystoneTrusts(Way):
    """Trusts. Each carries a marker in a member that Keystone does not know, and keeps."""

    title = "trust"

    def create(self, caller: Caller, credential: CloudCredential) -> CloudCredential:
        trust = {
            "trustor_user_id": caller.user_id,
            "trustee_user_id": self._login.ask_own(lambda session: session.get_user_id()),
            "project_id": caller.project_id,
            "impersonation": True,
            "roles": [{"id": role} for role in credential.roles],
            "description": self._mark(credential),
        }
        answer = self._login.send(caller.token, "POST", _PATH, json={"trust": trust})
        return replace(credential, secret=str(created(answer, self.title)["trust"]["id"]))

    def open(self, credential: CloudCredential) -> Access:
        return Access(self._login.open_own({"trust_id": credential.secret}), self._login.region)

    def list_all(self) -> Iterator[tuple[str, str]]:
        """
        Return the ids of this site's trusts, each with the id of its credential.

        Raises ServiceUnavailable and ServiceRejected.
        """
        service = self._login.open_service(self._login.open_own())

        def send(session: Any) -> Any:
            return service.request(session, "GET", f"{_PATH}?trustee_user_id={session.get_user_id()}")

        answer = service.call(send)
        check_status(answer, 200)
        for trust in answer.json()["trusts"]:
            marker = marker_of(trust)
            if marker is not None and marker.site == self._site:
                yield str(trust["id"]), marker.resource_id

    def delete(self, credential: CloudCredential) -> str | None:
        if credential.secret:
            return self.delete_trust(credential.secret)
        # Its creation was interrupted before the answer.
        trust_ids = [trust_id for trust_id, credential_id in self.list_all() if credential_id == credential.id]
        return next(filter(None, map(self.delete_trust, trust_ids)), None)

    def delete_trust(self, trust_id: str) -> str | None:
        """
        Delete a trust; return why it remains, None if it does not. Raises ServiceUnavailable.

        Only the trustor and an administrator may delete a trust. With the trust, Stoker acts as the trustor; Keystone
        refuses this after the trustor has lost a role.
        """
        login = self._login
        # Without a project, Keystone says only whether the trust exists.
        for session in (login.open_own({"trust_id": trust_id}), login.open_own(), login.open_own(in_project=True)):
            with suppress(ServiceRejected):  # the trust is gone, or its trustor or the roles are
                answer = login.open_service(session).send("DELETE", f"{_PATH}/{trust_id}")
                if answer.status_code in (204, 404):
                    return None
        _log.warning("trust.kept", trust_id=trust_id)
        return (
            f"Keystone lets Stoker not delete the trust {trust_id}, because its trustor has lost a role or is disabled:"
            f" an administrator can, with `openstack trust delete {trust_id}`"
        )


class KeystoneCredentials(Way):
    """
    Application credentials.

    The name and the secret are recorded before the request, so that a credential can always be found and deleted. A
    credential is unrestricted, because it deletes itself.
    """

    title = "application credential"

    def create(self, caller: Caller, credential: CloudCredential) -> CloudCredential:
        body = {
            "name": self._mark(credential),
            "description": "Used by Stoker for the stacks of this user; deleted with the last of them",
            "secret": credential.secret,
            "roles": [{"id": role} for role in credential.roles],
            "unrestricted": True,
        }
        path = f"/users/{caller.user_id}/application_credentials"
        created(self._login.send(caller.token, "POST", path, json={"application_credential": body}), self.title)
        return credential

    def open(self, credential: CloudCredential) -> Access:
        return Access(self._session(credential), self._login.region)

    def delete(self, credential: CloudCredential) -> None:
        """Delete a credential with its own login."""
        service = self._login.open_service(self._session(credential))
        path = f"/users/{credential.user_id}/application_credentials"
        with suppress(ServiceRejected):  # Keystone deletes the credentials of a user who loses a role
            listed = service.send("GET", f"{path}?{urlencode({'name': self._mark(credential)})}")
            check_status(listed, 200)
            for item in listed.json()["application_credentials"]:
                service.send("DELETE", f"{path}/{item['id']}")

    def _session(self, credential: CloudCredential) -> Any:
        from keystoneauth1.identity import v3

        return self._login.open_session(
            v3.ApplicationCredential(
                auth_url=self._login.url,
                application_credential_name=self._mark(credential),
                application_credential_secret=credential.secret,
                user_id=credential.user_id,
            )
        )
