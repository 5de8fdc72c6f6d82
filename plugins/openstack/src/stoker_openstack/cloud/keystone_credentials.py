"""Requests to Keystone for application credentials, with which Stoker acts for users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stoker.circuit_breaker import ServiceUnavailable
from stoker_openstack.cloud.client import Access
from stoker_openstack.cloud.keystone_login import Caller, KeystoneLogin
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.store.delegations import CloudCredential


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
        from keystoneauth1 import exceptions

        session = self._session(credential)
        url = f"{self._login.url}/users/{credential.user_id}/application_credentials"
        try:
            listed = session.get(url, params={"name": self._name(credential)}, log=False).json()
            for item in listed["application_credentials"]:
                session.delete(f"{url}/{item['id']}", log=False)
        except (exceptions.Unauthorized, exceptions.NotFound, exceptions.Forbidden):
            return  # Keystone deletes the credentials of a user who loses a role
        except exceptions.ClientException as error:
            raise ServiceUnavailable(f"Keystone does not delete an application credential: {error}") from None

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
