"""
The login for the owner of a root stack at this site's API.

This module is imported late: it needs keystoneauth.
"""

from __future__ import annotations

from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from stoker.failures import ServiceRejected
from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials
from stoker_openstack.cloud.errors import CloudFailure


class OwnerLogin(BaseAuthPlugin):  # type: ignore[misc]  # keystoneauth has no types
    """A login by the delegation of the stack."""

    def __init__(self, credentials: DelegatedCredentials, root_id: str) -> None:
        super().__init__()
        self._credentials, self._root_id = credentials, root_id

    def get_token(self, session: Session) -> str:
        try:
            return self._credentials.open(self._root_id).client.token()
        except CloudFailure as error:
            raise ServiceRejected(str(error), 401) from None

    def invalidate(self) -> bool:
        try:
            self._credentials.open(self._root_id).client.forget_token()
        except CloudFailure:
            return False  # there is no delegation any more
        return True
