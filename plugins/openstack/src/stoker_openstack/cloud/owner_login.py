"""The login with which Stoker sends requests to its own API for the owners of stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.circuit_breaker import ServiceRejected
from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials
from stoker_openstack.cloud.errors import CloudFailure


class OwnerLogin:
    """Implements ``service_client.Login`` with delegations. Instead of a project, callers name a root stack."""

    def __init__(self, credentials: DelegatedCredentials) -> None:
        self._credentials = credentials

    def headers(self, _http: Any, root_id: str) -> Mapping[str, str]:
        try:
            return {"X-Auth-Token": self._credentials.open(root_id).client.token()}
        except CloudFailure as error:
            raise ServiceRejected(str(error), 401) from None

    def forget(self, root_id: str) -> None:
        try:
            self._credentials.open(root_id).client.forget_token()
        except CloudFailure:
            return  # there is no delegation any more
