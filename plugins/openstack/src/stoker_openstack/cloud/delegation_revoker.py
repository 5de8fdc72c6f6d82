"""Revokes delegations at Keystone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.delegation_creator import REVOKE
from stoker_openstack.cloud.keystone_credentials import KeystoneCredentials
from stoker_openstack.cloud.keystone_login import KeystoneLogin
from stoker_openstack.cloud.keystone_trusts import KeystoneTrusts
from stoker_openstack.store import delegations
from stoker_openstack.store.delegations import CloudCredential, Delegation


class DelegationRevoker:
    """
    Deletes trusts and application credentials. ``site`` is the public id of this site; ``forget_login`` drops the login
    of a delegation, or of an application credential, by its id.
    """

    def __init__(self, store: Store, login: KeystoneLogin, site: str, forget_login: Callable[[str], object]) -> None:
        self._store = store
        self._trusts = KeystoneTrusts(login)
        self._credentials = KeystoneCredentials(login, site)
        self._site = site
        self._forget_login = forget_login

    def register(self, work: Work) -> None:
        """Register the job that revokes ended delegations."""
        work.register(REVOKE, self._revoke)

    def revoke(self, delegation: Delegation) -> str | None:
        """
        Revoke a delegation at Keystone, and delete its record; return what remains at Keystone, or None.

        Raises ServiceUnavailable and ServiceRejected.
        """
        problem = None
        if delegation.credential_id is not None:
            self._revoke_credential(delegation.credential_id, delegation.id)
        elif delegation.trust_id is not None:
            if not self._store.write(lambda tx: _leave_trust(tx, delegation)):
                problem = self._trusts.delete(delegation.trust_id)
        else:
            problem = self._revoke_unanswered(delegation.id)
        self._forget_login(delegation.id)
        self._store.write(lambda tx: delegations.delete(tx, delegation.id))
        return problem

    def _revoke(self, args: Mapping[str, Any]) -> None:
        """Job: revoke an ended delegation."""
        with self._store.read() as tx:
            delegation = delegations.find(tx, args["id"])
        if delegation is not None and delegation.is_ended:
            self.revoke(delegation)

    def _revoke_unanswered(self, id: str) -> str | None:
        """Delete the trust of a delegation whose creation was interrupted before the answer."""
        problem = None
        for trust_id, delegation_id in list(self._trusts.list_all(self._site)):
            if delegation_id == id:
                problem = self._trusts.delete(trust_id) or problem
        return problem

    def _revoke_credential(self, credential_id: str, delegation_id: str) -> None:
        """Delete an application credential, unless another stack uses it."""

        def end(tx: Tx) -> CloudCredential | None:
            credential = delegations.find_credential(tx, credential_id, for_update=True)
            others = [item for item in delegations.of_credential(tx, credential_id) if item.id != delegation_id]
            if credential is None or others:
                return None
            delegations.save_credential(tx, replace(credential, is_ended=True))
            return credential

        credential = self._store.write(end)
        if credential is None:
            return
        self._credentials.delete(credential)
        self._forget_login(credential_id)
        self._store.write(lambda tx: delegations.delete_credential(tx, credential_id))


def _leave_trust(tx: Tx, delegation: Delegation) -> bool:
    """Delete the record of a delegation if another stack needs its trust. Return whether one does."""
    is_shared = any(item.id != delegation.id for item in delegations.lock_sharing(tx, delegation))
    if is_shared:
        delegations.delete(tx, delegation.id)
    return is_shared
