"""EC2 keys: those that users make for themselves, and those that stand for one resource of a stack."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

from stoker.identity import ec2, stack_users
from stoker.identity.sealing import Sealing
from stoker.identity.stack_users import StackUser, StackUsers
from stoker.model.errors import Unauthorized
from stoker.model.principal import Ec2Credential, Principal
from stoker.store import ec2_credentials, identity
from stoker.store.open import Store
from stoker.store.tx import Tx

_WRONG = "The EC2 access key is not valid, or no longer."
#: Whoever comes with a signed request may act as long as one signature lives.
_LIFE = timedelta(minutes=15)


class Ec2Keys:
    def __init__(self, store: Store, sealing: Sealing, users: StackUsers) -> None:
        self._store = store
        self._sealing = sealing
        self._users = users

    def create(self, tx: Tx, user_id: str, project_id: str) -> tuple[Ec2Credential, str]:
        """A new key, and its secret in the clear."""
        secret = secrets.token_hex(16)
        made = Ec2Credential(
            access=secrets.token_hex(16),
            sealed_secret=self._sealing.seal(secret),
            user_id=user_id,
            project_id=project_id,
        )
        ec2_credentials.add(tx, made)
        return made, secret

    def secret(self, credential: Ec2Credential) -> str:
        return self._sealing.open(credential.sealed_secret)

    def stands_for(self, request: ec2.Request) -> str | None:
        """The id of the resource whose key signed it, without a look into the store: it may be gone."""
        resource_id = stack_users.resource_of(request.params.get("AWSAccessKeyId", ""))
        if resource_id is None:
            return None
        try:
            ec2.check(self._users.secret_key(resource_id), request, datetime.now(UTC), aging=False)
        except Unauthorized:
            return None
        return resource_id

    def authenticate(self, request: ec2.Request) -> Principal:
        """Whose request it is. Raises Unauthorized."""
        access = ec2.access_of(request)
        with self._store.read() as tx:
            own = ec2_credentials.find(tx, access)
            user = stack_users.find(tx, access) if own is None else None
            now = tx.now
            if own is not None:
                secret, principal = self._sealing.open(own.sealed_secret), _owner(tx, own)
            elif user is not None:
                secret, principal = self._users.secret_key(user.resource_id), _itself(tx, user)
            else:
                raise Unauthorized(_WRONG)
        # What stands for a resource is good as long as that is: its agents send no time, its URLs are made once.
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
