"""
Credentials by which Stoker acts for the owner of a stack, in the owner's project: trusts, as in Heat, or application
credentials.

The delegation is created with the token of the request that creates the stack, before any resource exists, and is
revoked with the stack. Nested stacks use the delegation of their root stack. A stack that an OS::Heat::Stack creates on
this site has a delegation of its own with the same trust, because Keystone creates no trust for the token of a trust.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker.failures import ServiceRejected
from stoker.model.errors import Forbidden, Unavailable
from stoker.model.stack import Stack
from stoker.settings import Settings
from stoker.store import stacks
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.client import CloudClient, create_breakers
from stoker_openstack.cloud.context import LATE_OBJECTS
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.keystone import Caller, KeystoneCredentials, KeystoneLogin, KeystoneTrusts, Refused, Way
from stoker_openstack.cloud.names import CloudLogin
from stoker_openstack.store import cloud_objects, delegations
from stoker_openstack.store.delegations import APPLICATION_CREDENTIAL, TRUST, CloudCredential, Delegation

#: The kind of the job that revokes a delegation.
REVOKE = "cloud.revoke"
#: After this time, a delegation whose stack was not stored is revoked: its process was killed.
_UNCONFIRMED = timedelta(minutes=10)
_MEND = (
    "Keystone does not let Stoker act for the owner of the stack any more: the {way} is gone, or the owner {user} is"
    " disabled or has lost a role. Update or delete the stack, as a user of its project: Stoker then acts for this user"
)
_NONE = "Stoker may not act for the owner of the stack any more. Update or delete the stack, as a user of its project"


class DelegatedCredentials:
    """
    A delegation for each tree of stacks; see ``SiteCredentials``. ``site``: the public id of this site.

    A delegation is recorded as ended, with the job that revokes it, before Keystone is asked. The transaction that
    stores the stack makes the delegation active and cancels the job.
    """

    is_shared = False

    def __init__(self, settings: Settings, store: Store, work: Work, site: str) -> None:
        self._settings = settings
        self._login = KeystoneLogin(settings)
        self._store = store
        self._work = work
        self._breakers = create_breakers("of the project")
        self._lock = threading.Lock()
        #: By the id of the credential.
        self._logins: dict[str, CloudLogin] = {}
        self.trusts = KeystoneTrusts(self._login, site)
        self.ways: Mapping[str, Way] = {
            TRUST: self.trusts,
            APPLICATION_CREDENTIAL: KeystoneCredentials(self._login, site),
        }
        work.register(REVOKE, self._revoke)

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
        name = f"of project {project_id}"
        return CloudLogin(CloudClient(name, lambda: self._login.open_token(token), self._breakers))

    def end_unused(self, tx: Tx, root_id: str) -> None:
        stack = stacks.find(tx, root_id)
        if stack is None or stack.deleted_at is not None:
            _end_unused(tx, self._work, root_id)

    def drop_stack(self, tx: Tx, stack: Stack) -> None:
        """End the delegation of a deleted root stack, unless it still has objects."""
        _end_unused(tx, self._work, stack.id)

    def delegate(self, token: str, project_id: str, root_id: str) -> Delegation | None:
        """
        Create a delegation for a stack with the token of its owner; None if the stack has one.

        Must not be called in a transaction. ``confirm`` makes the result active. Raises Forbidden, Unauthorized and
        Unavailable.
        """
        with self._store.read() as tx:
            if delegations.active(tx, root_id) is not None:
                return None
        caller = self._login.read_token(token)
        if caller.project_id != project_id:
            raise Forbidden(f"Stoker can act for users in the project of their token only, which is not {project_id}")
        wanted = CloudCredential(id=str(uuid4()), way=TRUST, project_id=project_id, user_id=caller.user_id, roles=())
        if caller.trust_id is not None:  # another stack may request this one
            shared = self._share(wanted, root_id, lambda present: present.secret == caller.trust_id)
            if shared is not None:
                return shared
        wanted = replace(wanted, roles=_roles(self._settings, caller))
        problems = []
        for way in _ways(self._settings, caller):
            try:
                return self._obtain(replace(wanted, way=way), caller, root_id)
            except Refused as error:
                problems.append(str(error))
        raise _refusal(caller, problems)

    def confirm(self, tx: Tx, new: Delegation) -> None:
        """Make a new delegation active, in the transaction that needs it. Raises Unavailable if it was revoked."""
        credential = delegations.find_credential(tx, new.credential_id, for_update=True)
        is_usable = credential is not None and not credential.is_ended
        if delegations.find(tx, new.id, for_update=True) is None or not is_usable:
            raise Unavailable("the permission to act for the owner of the stack was revoked meanwhile; try again")
        if (previous := delegations.active(tx, new.root_id)) is not None:
            _end(tx, self._work, previous)
        delegations.save(tx, replace(new, is_ended=False))
        self._work.cancel(tx, REVOKE, new.id)

    def discard(self, new: Delegation) -> None:
        """Revoke a delegation that was not confirmed."""
        self._store.write(lambda tx: _end(tx, self._work, new))

    def revoke(self, delegation: Delegation) -> str | None:
        """
        Delete the credential of a delegation at Keystone, unless another stack uses it, and the records of both.

        Returns what remains at Keystone, or None. Raises ServiceUnavailable and ServiceRejected.
        """
        credential = self._store.write(lambda tx: _leave(tx, delegation))
        if credential is None:
            return None
        problem = self.ways[credential.way].delete(credential)
        self._logins.pop(credential.id, None)
        self._store.write(lambda tx: _drop(tx, self._work, delegation))
        return problem

    def is_needed(self, tx: Tx, root_id: str) -> bool:
        """Return whether a tree of stacks has objects at the cloud."""
        return cloud_objects.any_of_root(tx, root_id)

    def _create_login(self, credential: CloudCredential) -> CloudLogin:
        way = self.ways[credential.way]

        def refuse(error: ServiceRejected) -> Exception:
            """Distinguish a credential that is gone from a Keystone that refuses Stoker, too."""
            if not self._login.is_own_valid():
                return error
            self._store.write(lambda tx: _end_refused(tx, self._work, credential.id))
            return CloudFailure(_MEND.format(way=way.title, user=credential.user_id), "AuthorizationFailure")

        name = f"of project {credential.project_id}"
        return CloudLogin(CloudClient(name, lambda: way.open(credential), self._breakers, refuse))

    def _revoke(self, args: Mapping[str, Any]) -> None:
        """Job: revoke an ended delegation."""
        with self._store.read() as tx:
            delegation = delegations.find(tx, args["id"])
        if delegation is not None and delegation.is_ended:
            self.revoke(delegation)

    def _share(
        self, wanted: CloudCredential, root_id: str, suits: Callable[[CloudCredential], bool]
    ) -> Delegation | None:
        """Return a delegation by a credential of the same way that other stacks of the user use, and that suits."""

        def record(tx: Tx) -> Delegation | None:
            usable = delegations.usable_credentials(tx, wanted.user_id, wanted.project_id, wanted.way)
            match = next(filter(suits, usable), None)
            return None if match is None else _record(tx, self._work, root_id, match)

        return self._store.write(record)

    def _obtain(self, wanted: CloudCredential, caller: Caller, root_id: str) -> Delegation:
        """Return a delegation by a credential with exactly the wanted roles. Raises Refused and Unavailable."""
        if wanted.way == APPLICATION_CREDENTIAL:
            # A token with fewer roles must not act with a credential that has more.
            if shared := self._share(wanted, root_id, lambda present: present.roles == wanted.roles):
                return shared
            wanted = replace(wanted, secret=secrets.token_urlsafe(32))

        def record(tx: Tx) -> Delegation:
            delegations.add_credential(tx, wanted)
            return _record(tx, self._work, root_id, wanted)

        new = self._store.write(record)
        try:
            credential = self.ways[wanted.way].create(caller, wanted)
        except Refused:
            self._store.write(lambda tx: _drop(tx, self._work, new))
            raise
        except Unavailable:  # Keystone may have created it all the same
            self._store.write(lambda tx: _end(tx, self._work, new))
            raise
        self._store.write(lambda tx: delegations.save_credential(tx, credential))
        return new


def _ways(settings: Settings, caller: Caller) -> Sequence[str]:
    if settings.stack_delegation != "AUTO":
        return (settings.stack_delegation,)
    # Keystone creates no trusts for most logins that are delegated themselves.
    return (APPLICATION_CREDENTIAL, TRUST) if caller.is_delegated else (TRUST, APPLICATION_CREDENTIAL)


def _roles(settings: Settings, caller: Caller) -> tuple[str, ...]:
    """Return the ids of the roles to delegate. Raises Forbidden if the caller lacks one of ``trust_roles``."""
    names = [name.strip() for name in settings.trust_roles.split(",") if name.strip()]
    if missing := [name for name in names if name.lower() not in caller.roles]:
        raise Forbidden(
            f"the user {caller.user_name} lacks the role {', '.join(missing)} in the project {caller.project_id},"
            " which the setting trust_roles requires of owners of stacks with servers: ask the administrator of the"
            " project for the role"
        )
    return tuple(sorted(caller.roles[name.lower()] for name in names) or sorted(caller.roles.values()))


def _record(tx: Tx, work: Work, root_id: str, credential: CloudCredential) -> Delegation:
    new = Delegation(id=str(uuid4()), root_id=root_id, credential_id=credential.id)
    delegations.add(tx, new)
    work.defer(tx, REVOKE, new.id, {"id": new.id}, at=tx.now + _UNCONFIRMED)
    return new


def _drop(tx: Tx, work: Work, delegation: Delegation) -> None:
    """Delete the records of a delegation and its credential, which Keystone does not have."""
    delegations.delete(tx, delegation.id)
    delegations.delete_credential(tx, delegation.credential_id)
    work.cancel(tx, REVOKE, delegation.id)


def _end_unused(tx: Tx, work: Work, root_id: str) -> None:
    delegation = delegations.active(tx, root_id)
    is_used = cloud_objects.any_of_root(tx, root_id) or work.is_pending(tx, LATE_OBJECTS, root_id)
    if delegation is not None and not is_used:
        _end(tx, work, delegation)


def _end_refused(tx: Tx, work: Work, id: str) -> None:
    """End a credential that Keystone refuses, with all its delegations."""
    credential = delegations.find_credential(tx, id, for_update=True)
    if credential is not None:
        delegations.save_credential(tx, replace(credential, is_ended=True))
    for item in delegations.of_credential(tx, id):
        current = delegations.find(tx, item.id, for_update=True)
        if current is not None and not current.is_ended:
            _end(tx, work, current)


def _end(tx: Tx, work: Work, delegation: Delegation) -> None:
    """Revoke a delegation that is no longer needed, or whose stack was not stored."""
    delegations.save(tx, replace(delegation, is_ended=True))
    work.defer_once(tx, REVOKE, delegation.id, {"id": delegation.id})


def _leave(tx: Tx, delegation: Delegation) -> CloudCredential | None:
    """Delete the record of a delegation whose credential others use. Otherwise end the credential, and return it."""
    credential = delegations.find_credential(tx, delegation.credential_id, for_update=True)
    is_shared = any(item.id != delegation.id for item in delegations.of_credential(tx, delegation.credential_id))
    if credential is None or is_shared:
        delegations.delete(tx, delegation.id)
        return None
    delegations.save_credential(tx, replace(credential, is_ended=True))
    return credential


def _refusal(caller: Caller, problems: Sequence[str]) -> Forbidden:
    if caller.is_restricted:
        remedy = (
            f"log in with a password, or with an application credential that is created with --unrestricted (the"
            f" application credential {caller.credential_name} is restricted)"
        )
    elif caller.is_delegated or caller.trust_id is not None:
        remedy = "send a token of a login with a password"
    else:
        remedy = "ask the administrator of Keystone, or let the operator of Stoker choose another stack_delegation"
    return Forbidden(
        f"Keystone does not permit that Stoker acts for the owner of the stack: {'; '.join(problems)}. Remedy: {remedy}"
    )
