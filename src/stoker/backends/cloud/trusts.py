"""
Trusts at Keystone: with them, Stoker acts for the owner of a stack, in the owner's project, as Heat does.

The trust is created with the token of the request that creates the stack, before any resource exists, and is deleted
with the stack. Nested stacks use the trust of their root stack.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from stoker.backends.cloud.client import Access, Breakers, CloudClient
from stoker.backends.cloud.credentials import CloudLogin
from stoker.backends.cloud.errors import CloudFailure
from stoker.backends.cloud.keystone_trusts import KeystoneTrusts
from stoker.backends.cloud.names import NameResolver
from stoker.circuit_breaker import ServiceRejected
from stoker.model.cloud import CloudObject
from stoker.model.errors import Forbidden, Unavailable
from stoker.model.principal import Principal
from stoker.model.stack import Stack
from stoker.settings import Settings
from stoker.store import cloud_objects, delegations, stacks
from stoker.store.delegations import Delegation
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

#: The kind of the job that deletes a trust.
REVOKE = "cloud.revoke"
_MEND = (
    "Keystone has no valid trust of this stack any more: update the stack, as a user of its project, to create another"
)
_log = structlog.get_logger("stoker.backends")


class TrustCredentials:
    """Implements ``Credentials`` with a trust for each tree of stacks."""

    is_shared = False

    def __init__(self, settings: Settings, store: Store, work: Work) -> None:
        self._keystone = KeystoneTrusts(settings)
        self._store = store
        self._work = work
        self._breakers = Breakers("of the project")
        self._lock = threading.Lock()
        self._logins: dict[str, CloudLogin] = {}

    def register(self) -> None:
        """Register the job that deletes trusts."""
        self._work.register(REVOKE, self._revoke)

    def open(self, item: CloudObject) -> CloudLogin:
        with self._store.read() as tx:
            delegation = delegations.find(tx, item.root_id)
        if delegation is None:
            raise CloudFailure(_MEND, "AuthorizationFailure")
        with self._lock:
            if delegation.trust_id not in self._logins:
                self._logins[delegation.trust_id] = self._login(delegation)
            return self._logins[delegation.trust_id]

    def open_project(self, token: str, project_id: str) -> CloudLogin:
        def open_access() -> Access:
            return self._keystone.open_token(token, project_id)

        client = CloudClient(f"of project {project_id}", open_access, self._breakers)
        return CloudLogin(client, NameResolver(client))

    def scope(self, item: CloudObject) -> str:
        return item.project_id

    def object_deleted(self, tx: Tx, item: CloudObject) -> None:
        """End the delegation with the last object of a deleted stack."""
        stack = stacks.find(tx, item.root_id)
        if stack is None or stack.deleted_at is not None:
            self._end(tx, item.root_id)

    def drop_stack(self, tx: Tx, stack: Stack) -> None:
        """End the delegation of a deleted root stack, unless it still has objects."""
        self._end(tx, stack.id)

    def delegate(self, token: str, principal: Principal, project_id: str, root_id: str) -> Delegation | None:
        """
        Create a trust for a stack with the token of its owner; None if the stack has one.

        Must not be called in a transaction; ``delegations.replace`` stores the result. Raises Forbidden or Unavailable.
        """
        with self._store.read() as tx:
            if delegations.find(tx, root_id) is not None:
                return None
        answer = self._keystone.create(token, principal, project_id)
        if answer.status_code in (401, 403):
            raise Forbidden(
                f"Keystone refuses a trust for the stack ({answer.status_code}): log in with a password, not with an"
                " application credential or a trust"
            )
        if answer.status_code != 201:
            raise Unavailable(f"Keystone answered {answer.status_code} to the request for a trust; try again later")
        trust_id = str(answer.json()["trust"]["id"])
        return Delegation(root_id=root_id, project_id=project_id, user_id=principal.user_id, trust_id=trust_id)

    def _login(self, delegation: Delegation) -> CloudLogin:
        def refuse(error: ServiceRejected) -> Exception:
            """Distinguish a trust that is gone from a login of Stoker that is wrong."""
            if not self._keystone.is_own_login_valid():
                return error
            self._store.write(lambda tx: _drop(tx, delegation))
            return CloudFailure(_MEND, "AuthorizationFailure")

        def open_access() -> Access:
            return self._keystone.open(delegation.trust_id)

        client = CloudClient(f"of project {delegation.project_id}", open_access, self._breakers, refuse)
        return CloudLogin(client, NameResolver(client))

    def _end(self, tx: Tx, root_id: str) -> None:
        delegation = delegations.find(tx, root_id)
        if delegation is not None and not cloud_objects.any_of_root(tx, root_id):
            delegations.save(tx, replace(delegation, is_ended=True))
            self._work.defer(tx, REVOKE, root_id, {"root_id": root_id})

    def _revoke(self, args: Mapping[str, Any]) -> None:
        """Job: delete the trust of a deleted stack."""
        with self._store.read() as tx:
            delegation = delegations.find(tx, args["root_id"])
        if delegation is None:
            return
        self._keystone.delete(delegation.trust_id)
        with self._lock:
            self._logins.pop(delegation.trust_id, None)
        self._store.write(lambda tx: delegations.delete(tx, delegation.root_id))


def _drop(tx: Tx, delegation: Delegation) -> None:
    current = delegations.find(tx, delegation.root_id)
    if current is not None and current.trust_id == delegation.trust_id:
        delegations.delete(tx, delegation.root_id)
