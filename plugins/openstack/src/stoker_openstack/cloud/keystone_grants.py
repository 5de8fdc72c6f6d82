"""Requests to Keystone for what lets Stoker act for users: trusts of its own user, and application credentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import structlog

from stoker.failures import ServiceRejected
from stoker.service_client import check_status
from stoker_openstack.cloud.client import Access
from stoker_openstack.cloud.keystone_login import Caller, KeystoneLogin
from stoker_openstack.cloud.markers import Marker, marker_of
from stoker_openstack.store.delegations import CloudCredential

_PATH = "/OS-TRUST/trusts"
_log = structlog.get_logger("stoker.backends")


class KeystoneTrusts:
    """
    Creates, uses, lists and deletes trusts.

    A trust carries a marker with the id of its delegation. Keystone keeps members that it does not know.
    """

    def __init__(self, login: KeystoneLogin) -> None:
        self._login = login

    def create(self, caller: Caller, roles: Sequence[str], marker: Marker) -> Any:
        """Request a trust of the caller; return the response. ``roles`` are ids. Raises Unavailable."""
        trust = {
            "trustor_user_id": caller.user_id,
            "trustee_user_id": self._login.ask_own(lambda session: session.get_user_id()),
            "project_id": caller.project_id,
            "impersonation": True,
            "roles": [{"id": role} for role in roles],
            "description": marker.text,
        }
        return self._login.send(caller.token, "POST", _PATH, json={"trust": trust})

    def open(self, trust_id: str) -> Access:
        """Return the access to the cloud that a trust grants."""
        return Access(self._login.open_own({"trust_id": trust_id}), self._login.region)

    def list_all(self, site: str) -> Iterator[tuple[str, str]]:
        """
        Return the ids of this site's trusts, each with the id of its delegation.

        Raises ServiceUnavailable and ServiceRejected.
        """
        service = self._login.open_service(self._login.open_own())

        def send(session: Any) -> Any:
            return service.request(session, "GET", f"{_PATH}?trustee_user_id={session.get_user_id()}")

        answer = service.call(send)
        check_status(answer, 200)
        for trust in answer.json()["trusts"]:
            marker = marker_of(trust)
            if marker is not None and marker.site == site:
                yield str(trust["id"]), marker.resource_id

    def delete(self, trust_id: str) -> str | None:
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


class KeystoneCredentials:
    """
    Creates, uses and deletes application credentials. ``site``: the public id of this site.

    The name and the secret are recorded before the request, so that a credential can always be found and deleted. A
    credential is unrestricted, because it deletes itself.
    """

    def __init__(self, login: KeystoneLogin, site: str) -> None:
        self._login = login
        self._site = site

    def create(self, caller: Caller, credential: CloudCredential, roles: Sequence[str]) -> Any:
        """Request a credential of the caller; return the response. ``roles`` are ids. Raises Unavailable."""
        body = {
            "name": self._name(credential),
            "description": "Used by Stoker for the stacks of this user; deleted with the last of them",
            "secret": credential.secret,
            "roles": [{"id": role} for role in roles],
            "unrestricted": True,
        }
        path = f"/users/{caller.user_id}/application_credentials"
        return self._login.send(caller.token, "POST", path, json={"application_credential": body})

    def open(self, credential: CloudCredential) -> Access:
        """Return the access to the cloud that a credential grants."""
        return Access(self._session(credential), self._login.region)

    def delete(self, credential: CloudCredential) -> None:
        """Delete a credential with its own login. Raises ServiceUnavailable."""
        service = self._login.open_service(self._session(credential))
        path = f"/users/{credential.user_id}/application_credentials"
        with suppress(ServiceRejected):  # Keystone deletes the credentials of a user who loses a role
            listed = service.send("GET", f"{path}?{urlencode({'name': self._name(credential)})}")
            check_status(listed, 200)
            for item in listed.json()["application_credentials"]:
                service.send("DELETE", f"{path}/{item['id']}")

    def _session(self, credential: CloudCredential) -> Any:
        from keystoneauth1.identity import v3

        return self._login.open_session(
            v3.ApplicationCredential(
                auth_url=self._login.url,
                application_credential_name=self._name(credential),
                application_credential_secret=credential.secret,
                user_id=credential.user_id,
            )
        )

    def _name(self, credential: CloudCredential) -> str:
        return Marker(self._site, credential.id).text
