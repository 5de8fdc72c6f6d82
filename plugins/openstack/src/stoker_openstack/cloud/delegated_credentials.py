"""
Credentials by which Stoker acts for the owner of a stack, in the owner's project: trusts, as in Heat, or application
credentials.

The delegation is created with the token of the request that creates the stack, before any resource exists, and is
revoked with the stack. Nested stacks use the delegation of their root stack. A stack that an OS::Heat::Stack creates on
this site has a delegation of its own with the same trust, because Keystone creates no trust for the token of a trust.
"""

from __future__ import annotations

import threading

from msgspec.structs import replace

from stoker.failures import ServiceRejected
from stoker.model.errors import Unavailable
from stoker.model.stack import Stack
from stoker.settings import Settings
from stoker.store import stacks
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.client import CloudClient, create_breakers
from stoker_openstack.cloud.credentials import CloudLogin
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.keystone import KeystoneLogin
from stoker_openstack.cloud.keystone_delegations import REVOKE, KeystoneDelegations
from stoker_openstack.cloud.late_objects import LATE_OBJECTS
from stoker_openstack.cloud.names import NameResolver
from stoker_openstack.store import cloud_objects, delegations
from stoker_openstack.store.delegations import CloudCredential, Delegation

_MEND = (
    "Keystone does not let Stoker act for the owner of the stack any more: the {way} is gone, or the owner {user} is"
    " disabled or has lost a role. Update or delete the stack, as a user of its project: Stoker then acts for this user"
)
_NONE = "Stoker may not act for the owner of the stack any more. Update or delete the stack, as a user of its project"


class DelegatedCredentials:
    """A delegation for each tree of stacks; see ``SiteCredentials``. ``site``: the public id of this site."""

    is_shared = False

    def __init__(self, settings: Settings, store: Store, work: Work, site: str) -> None:
        self._login = KeystoneLogin(settings)
        self._store = store
        self._work = work
        self._breakers = create_breakers("of the project")
        self._lock = threading.Lock()
        #: By the id of the credential.
        self._logins: dict[str, CloudLogin] = {}
        self.keystone = KeystoneDelegations(
            settings, store, work, self._login, site, lambda key: self._logins.pop(key, None)
        )

    def open(self, root_id: str) -> CloudLogin:
        with self._store.read() as tx:
            delegation = delegations.active(tx, root_id)
            credential = None if delegation is None else delegations.find_credential(tx, delegation.credential_id)
        if credential is None:
            raise CloudFailure(_NONE, "AuthorizationFailure")
        return self.open_credential(credential)

    def open_credential(self, credential: CloudCredential) -> CloudLogin:
        """Return the client of a credential."""
        with self._lock:
            if credential.id not in self._logins:
                self._logins[credential.id] = self._create_login(credential)
            return self._logins[credential.id]

    def open_project(self, token: str, project_id: str) -> CloudLogin:
        client = CloudClient(f"of project {project_id}", lambda: self._login.open_token(token), self._breakers)
        return CloudLogin(client, NameResolver(client))

    def end_unused(self, tx: Tx, root_id: str) -> None:
        stack = stacks.find(tx, root_id)
        if stack is None or stack.deleted_at is not None:
            self._end_unused(tx, root_id)

    def drop_stack(self, tx: Tx, stack: Stack) -> None:
        """End the delegation of a deleted root stack, unless it still has objects."""
        self._end_unused(tx, stack.id)

    def delegate(self, token: str, project_id: str, root_id: str) -> Delegation | None:
        """
        Create a delegation for a stack with the token of its owner; None if the stack has one.

        Must not be called in a transaction. ``confirm`` makes the result active. Raises Forbidden, Unauthorized and
        Unavailable.
        """
        with self._store.read() as tx:
            if delegations.active(tx, root_id) is not None:
                return None
        return self.keystone.create(token, project_id, root_id)

    def confirm(self, tx: Tx, new: Delegation) -> None:
        """Make a new delegation active, in the transaction that needs it. Raises Unavailable if it was revoked."""
        credential = delegations.find_credential(tx, new.credential_id, for_update=True)
        is_usable = credential is not None and not credential.is_ended
        if delegations.find(tx, new.id, for_update=True) is None or not is_usable:
            raise Unavailable("the permission to act for the owner of the stack was revoked meanwhile; try again")
        if (previous := delegations.active(tx, new.root_id)) is not None:
            self.keystone.end(tx, previous)
        delegations.save(tx, replace(new, is_ended=False))
        self._work.cancel(tx, REVOKE, new.id)

    def discard(self, new: Delegation) -> None:
        """Revoke a delegation that was not confirmed."""
        self._store.write(lambda tx: self.keystone.end(tx, new))

    def is_needed(self, tx: Tx, root_id: str) -> bool:
        """Return whether a tree of stacks has objects at the cloud."""
        return cloud_objects.any_of_root(tx, root_id)

    def _create_login(self, credential: CloudCredential) -> CloudLogin:
        way = self.keystone.ways[credential.way]

        def refuse(error: ServiceRejected) -> Exception:
            """Distinguish a credential that is gone from a Keystone that refuses Stoker, too."""
            if not self._login.is_own_valid():
                return error
            self._store.write(lambda tx: self._end_refused(tx, credential.id))
            return CloudFailure(_MEND.format(way=way.title, user=credential.user_id), "AuthorizationFailure")

        name = f"of project {credential.project_id}"
        client = CloudClient(name, lambda: way.open(credential), self._breakers, refuse)
        return CloudLogin(client, NameResolver(client))

    def _end_unused(self, tx: Tx, root_id: str) -> None:
        delegation = delegations.active(tx, root_id)
        is_used = self.is_needed(tx, root_id) or self._work.is_pending(tx, LATE_OBJECTS, root_id)
        if delegation is not None and not is_used:
            self.keystone.end(tx, delegation)

    def _end_refused(self, tx: Tx, id: str) -> None:
        """End a credential that Keystone refuses, with all its delegations."""
        credential = delegations.find_credential(tx, id, for_update=True)
        if credential is not None:
            delegations.save_credential(tx, replace(credential, is_ended=True))
        for item in delegations.of_credential(tx, id):
            current = delegations.find(tx, item.id, for_update=True)
            if current is not None and not current.is_ended:
                self.keystone.end(tx, current)
