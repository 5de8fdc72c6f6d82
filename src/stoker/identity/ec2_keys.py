"""EC2 keys of two kinds: keys that users create, and keys that each belong to one resource of a stack."""

from __future__ import annotations

import secrets
from datetime import timedelta

from stoker.identity import ec2, stack_users
from stoker.identity.stack_users import StackUser, StackUsers
from stoker.model.errors import Unauthorized
from stoker.model.principal import Ec2Credential, Principal
from stoker.store import ec2_credentials, identity
from stoker.store.open import Store
from stoker.store.tx import Tx

_WRONG = "The EC2 access key is not valid, or has been revoked."
#: How long the principal of a signed request is valid: as long as a signature.
_LIFE = timedelta(minutes=15)


class Ec2Keys:
    """Creates users' EC2 keys and authenticates requests signed with either kind of key."""

    def __init__(self, store: Store, users: StackUsers) -> None:
        self._store = store
        self._users = users

    def create(self, tx: Tx, user_id: str, project_id: str) -> tuple[Ec2Credential, str]:
        """Create a key for a user in a project. Returns the key and its secret in plain text."""
        secret = secrets.token_hex(16)
        credential = Ec2Credential(access=secrets.token_hex(16), secret=secret, user_id=user_id, project_id=project_id)
        ec2_credentials.add(tx, credential)
        return credential, secret

    def stands_for(self, request: ec2.Request) -> str | None:
        """
        The id of the resource whose key signed the request; None for any other key.

        Does not read the database, so the resource may be deleted already.
        """
        resource_id = stack_users.resource_of(request.params.get("AWSAccessKeyId", ""))
        if resource_id is None:
            return None
        try:
            ec2.check(self._users.secret_key(resource_id), request, self._store.clock.now(), aging=False)
        except Unauthorized:
            return None
        return resource_id

    def may_exist(self, access: str) -> bool:
        """Return whether the access key exists; an answer without a check of a signature."""
        with self._store.read() as tx:
            return ec2_credentials.find(tx, access) is not None or stack_users.find(tx, access) is not None

    def authenticate(self, request: ec2.Request) -> Principal:
        """The principal whose key signed the request. Raises Unauthorized."""
        access = ec2.access_of(request)
        with self._store.read() as tx:
            own = ec2_credentials.find(tx, access)
            user = stack_users.find(tx, access) if own is None else None
            now = tx.now
            if own is not None:
                secret, principal = own.secret, _owner(tx, own)
            elif user is not None:
                secret, principal = self._users.secret_key(user.resource_id), _itself(tx, user)
            else:
                raise Unauthorized(_WRONG)
        # The key of a resource is valid as long as the resource: agents send no timestamp, and URLs are signed only
        # once.
        ec2.check(secret, request, now, aging=user is None)
        return principal


def _owner(tx: Tx, credential: Ec2Credential) -> Principal:
    user = identity.user(tx, credential.user_id)
    project = identity.project(tx, credential.project_id)
    if user is None or project is None or not user.enabled or not project.enabled:
        raise Unauthorized(_WRONG)
    return Principal(
        user_id=user.id,
        user_name=user.name,
        project_id=project.id,
        roles=identity.roles(tx, user.id, project.id),
        expires_at=tx.now + _LIFE,
    )


def _itself(tx: Tx, user: StackUser) -> Principal:
    if not user.project.enabled:
        raise Unauthorized(_WRONG)
    return Principal(
        user_id=user.id,
        user_name=user.name,
        project_id=user.project.id,
        roles=frozenset((stack_users.ROLE,)),
        expires_at=tx.now + _LIFE,
        resource_id=user.resource_id,
    )
