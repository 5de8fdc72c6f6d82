"""EC2 keys: each belongs to one resource of a stack and derives from the site secret, so none is stored."""

from __future__ import annotations

from datetime import timedelta

from stoker.identity import ec2, stack_users
from stoker.identity.stack_users import StackUsers
from stoker.model.errors import Unauthorized
from stoker.model.principal import Principal
from stoker.store.open import Store

_WRONG = "The EC2 access key is not valid, or has been revoked."
#: How long the principal of a signed request is valid.
_LIFE = timedelta(minutes=15)


class Ec2Keys:
    """Authenticates requests signed with the key of a resource."""

    def __init__(self, store: Store, users: StackUsers) -> None:
        self._store = store
        self._users = users

    def stands_for(self, request: ec2.Request) -> str | None:
        """
        The id of the resource whose key signed the request; None for any other key.

        Does not read the database, so the resource may be deleted already.
        """
        resource_id = stack_users.resource_of(request.params.get("AWSAccessKeyId", ""))
        if resource_id is None:
            return None
        try:
            ec2.check(self._users.secret_key(resource_id), request)
        except Unauthorized:
            return None
        return resource_id

    def authenticate(self, request: ec2.Request) -> Principal:
        """
        The principal whose key signed the request. Raises Unauthorized.

        A key is valid as long as its resource: agents send no timestamp, and URLs are signed only once.
        """
        access = ec2.access_of(request)
        with self._store.read() as tx:
            user, now = stack_users.find(tx, access), tx.now
        if user is None or not user.project.enabled:
            raise Unauthorized(_WRONG)
        ec2.check(self._users.secret_key(user.resource_id), request)
        return Principal(
            user_id=user.id,
            user_name=user.name,
            project_id=user.project.id,
            roles=frozenset((stack_users.ROLE,)),
            expires_at=now + _LIFE,
            resource_id=user.resource_id,
        )
