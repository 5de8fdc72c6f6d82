"""Creates delegations at Keystone with the token of a request, trusts or application credentials, and revokes them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker.model.errors import Forbidden, Unavailable
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.keystone import Caller, KeystoneCredentials, KeystoneLogin, KeystoneTrusts, message_of
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


class KeystoneDelegations:
    """
    Creates and revokes delegations. ``site`` is the public id of this site; ``forget_login`` drops the login of a
    delegation, or of an application credential, by its id.

    A delegation is recorded as ended, with the job that revokes it, before Keystone is asked. The transaction that
    stores the stack makes the delegation active and cancels the job.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        work: Work,
        login: KeystoneLogin,
        site: str,
        forget_login: Callable[[str], object],
    ) -> None:
        self._settings = settings
        self._store = store
        self._work = work
        self._login = login
        self._site = site
        self._forget_login = forget_login
        self.trusts = KeystoneTrusts(login)
        self.credentials = KeystoneCredentials(login, site)
        work.register(REVOKE, self._revoke)

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
        answer = self.trusts.create(caller, roles, Marker(self._site, new.id))
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
            answer = self.credentials.create(caller, credential, roles)
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
                problem = self.trusts.delete(delegation.trust_id)
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
        for trust_id, delegation_id in list(self.trusts.list_all(self._site)):
            if delegation_id == id:
                problem = self.trusts.delete(trust_id) or problem
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
        self.credentials.delete(credential)
        self._forget_login(credential_id)
        self._store.write(lambda tx: delegations.delete_credential(tx, credential_id))


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


def _leave_trust(tx: Tx, delegation: Delegation) -> bool:
    """Delete the record of a delegation if another stack needs its trust. Return whether one does."""
    is_shared = any(item.id != delegation.id for item in delegations.lock_sharing(tx, delegation))
    if is_shared:
        delegations.delete(tx, delegation.id)
    return is_shared
