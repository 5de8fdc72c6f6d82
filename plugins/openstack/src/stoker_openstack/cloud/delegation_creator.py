"""Creates delegations at Keystone with the token of a request: a trust, or an application credential."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

from msgspec.structs import replace

from stoker.model.errors import Forbidden, Unavailable
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.keystone_credentials import KeystoneCredentials
from stoker_openstack.cloud.keystone_login import Caller, KeystoneLogin, message_of
from stoker_openstack.cloud.keystone_trusts import KeystoneTrusts
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.store import delegations
from stoker_openstack.store.delegations import CloudCredential, Delegation

#: The kind of the job that revokes a delegation.
REVOKE = "cloud.revoke"
TRUST, APPLICATION_CREDENTIAL = "TRUST", "APPLICATION_CREDENTIAL"
#: After this time, a delegation whose stack was not stored is revoked: its process was killed.
_UNCONFIRMED = timedelta(minutes=10)


class _Refused(Exception):
    """Keystone refuses one way of delegation; the message says why."""


class DelegationCreator:
    """
    Creates delegations. ``site`` is the public id of this site.

    A delegation is recorded as ended, with the job that revokes it, before Keystone is asked. The transaction that
    stores the stack makes the delegation active and cancels the job.
    """

    def __init__(self, settings: Settings, store: Store, work: Work, login: KeystoneLogin, site: str) -> None:
        self._settings = settings
        self._store = store
        self._work = work
        self._login = login
        self.site = site
        self._trusts = KeystoneTrusts(login)
        self._credentials = KeystoneCredentials(login, site)

    def create(self, token: str, project_id: str, root_id: str) -> Delegation:
        """Create a delegation of the token's user. Raises Forbidden, Unauthorized and Unavailable."""
        caller = self._login.read_token(token)
        if caller.project_id != project_id:
            raise Forbidden(f"Stoker can act for users in the project of their token only, which is not {project_id}")
        if (shared := self._share_trust(caller, project_id, root_id)) is not None:
            return shared
        roles = self._roles(caller)
        problems = []
        for way in self._ways(caller):
            new = Delegation(id=str(uuid4()), root_id=root_id, project_id=project_id, user_id=caller.user_id)
            try:
                create = self._create_trust if way == TRUST else self._use_credential
                return create(caller, roles, new)
            except _Refused as error:
                problems.append(str(error))
            except Unavailable:
                self.discard(new)  # Keystone may have created it all the same
                raise
        raise _refusal(caller, problems)

    def discard(self, new: Delegation) -> None:
        """Revoke a delegation whose stack was not stored."""
        self._store.write(lambda tx: self._work.defer_once(tx, REVOKE, new.id, {"id": new.id}))

    def _ways(self, caller: Caller) -> Sequence[str]:
        if self._settings.stack_delegation != "AUTO":
            return (self._settings.stack_delegation,)
        # Keystone creates no trusts for most logins that are delegated themselves.
        return (APPLICATION_CREDENTIAL, TRUST) if caller.is_delegated else (TRUST, APPLICATION_CREDENTIAL)

    def _roles(self, caller: Caller) -> Sequence[str]:
        """Return the ids of the roles to delegate. Raises Forbidden if the caller lacks one of ``trust_roles``."""
        names = [name.strip() for name in self._settings.trust_roles.split(",") if name.strip()]
        if missing := [name for name in names if name.lower() not in caller.roles]:
            raise Forbidden(
                f"the user {caller.user_name} lacks the role {', '.join(missing)} in the project {caller.project_id},"
                " which the setting trust_roles requires of owners of stacks with servers: ask the administrator of the"
                " project for the role"
            )
        return sorted(caller.roles[name.lower()] for name in names) or sorted(caller.roles.values())

    def _share_trust(self, caller: Caller, project_id: str, root_id: str) -> Delegation | None:
        """Return a delegation with the trust by which another stack requests this one; None for other callers."""
        if caller.trust_id is None:
            return None
        new = Delegation(
            id=str(uuid4()),
            root_id=root_id,
            project_id=project_id,
            user_id=caller.user_id,
            trust_id=caller.trust_id,
        )

        def record(tx: Tx) -> Delegation | None:
            if all(item.is_ended for item in delegations.lock_sharing(tx, new)):
                return None  # the trust is another program's, or a job is about to delete it
            self._record(tx, new)
            return new

        return self._store.write(record)

    def _create_trust(self, caller: Caller, roles: Sequence[str], new: Delegation) -> Delegation:
        self._store.write(lambda tx: self._record(tx, new))
        answer = self._trusts.create(caller, roles, Marker(self.site, new.id))
        if answer.status_code != 201:
            self._store.write(lambda tx: self._drop(tx, new))
            raise _Refused(f"no trust: {message_of(answer)}")
        return replace(new, trust_id=str(answer.json()["trust"]["id"]))

    def _use_credential(self, caller: Caller, roles: Sequence[str], new: Delegation) -> Delegation:
        """Share the user's credential that has exactly these roles, or create one."""

        def record(tx: Tx) -> tuple[CloudCredential, bool]:
            for present in delegations.usable_credentials(tx, new.user_id, new.project_id):
                # A token with fewer roles must not act with a credential that has more.
                if present.roles == tuple(roles):
                    self._record(tx, replace(new, credential_id=present.id))
                    return present, False
            credential = CloudCredential(
                id=str(uuid4()),
                project_id=new.project_id,
                user_id=new.user_id,
                roles=tuple(roles),
                secret=secrets.token_urlsafe(32),
            )
            delegations.add_credential(tx, credential)
            self._record(tx, replace(new, credential_id=credential.id))
            return credential, True

        credential, is_new = self._store.write(record)
        if is_new:
            answer = self._credentials.create(caller, credential, roles)
            if answer.status_code != 201:
                self._store.write(lambda tx: self._drop(tx, new, credential))
                raise _Refused(f"no application credential: {message_of(answer)}")
        return replace(new, credential_id=credential.id)

    def _record(self, tx: Tx, new: Delegation) -> None:
        delegations.add(tx, new)
        self._work.defer(tx, REVOKE, new.id, {"id": new.id}, at=tx.now + _UNCONFIRMED)

    def _drop(self, tx: Tx, new: Delegation, credential: CloudCredential | None = None) -> None:
        """Delete the record of what Keystone has refused to create."""
        delegations.delete(tx, new.id)
        self._work.cancel(tx, REVOKE, new.id)
        if credential is not None:
            delegations.delete_credential(tx, credential.id)


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
