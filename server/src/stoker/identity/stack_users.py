"""
Stack users: each belongs to one resource of a stack, and agents and pre-signed URLs log in with it.

Heat keeps these users, their passwords and their EC2 keys in Keystone. Stoker derives them from the site secret and the
resource's id, as it does the tokens that permit only to signal one resource: nothing is stored, nothing has to be
cleaned up, and a credential is valid exactly as long as its resource exists.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from dataclasses import dataclass
from datetime import timedelta

from stoker.identity import ec2
from stoker.model.errors import Unauthorized
from stoker.model.principal import Principal, Project
from stoker.model.secrets import CREDENTIAL_PREFIX
from stoker.store import identity
from stoker.store.open import Store
from stoker.store.tx import Tx

ROLE = "heat_stack_user"
_ID = re.compile(r"([0-9a-f]{32})(?:-([0-9]+))?")


@dataclass(frozen=True, slots=True)
class StackUser:
    """A user that belongs to one resource of a stack."""

    id: str
    name: str
    resource_id: str
    #: The project of the resource's stack.
    project: Project
    #: The number of the run whose result the user reports; None: any.
    run: str | None = None


class StackUsers:
    """Derives the credentials of stack users. ``secret`` is the site secret."""

    def __init__(self, secret: bytes) -> None:
        self._passwords = hmac.digest(secret, b"stoker stack users' passwords", hashlib.sha256)
        self._keys = hmac.digest(secret, b"stoker stack users' keys", hashlib.sha256)

    def password(self, resource_id: str) -> str:
        """The password of the resource's user."""
        return _credential(self._passwords, resource_id)

    def secret_key(self, resource_id: str) -> str:
        """The secret for the access key; the access key equals the user's id."""
        return _credential(self._keys, resource_id)


def _credential(key: bytes, resource_id: str) -> str:
    """The prefix identifies a credential, so that it is redacted wherever it appears."""
    return CREDENTIAL_PREFIX + hmac.new(key, resource_id.encode(), hashlib.sha256).hexdigest()[:32]


def user_id(resource_id: str, run: str = "") -> str:
    """
    The id of the resource's user, and also its access key.

    With the number of a ``run``: the id of a user that reports the result of this run only. Its password is that of the
    resource's user.
    """
    id = resource_id.replace("-", "")
    return f"{id}-{run}" if run else id


def resource_of(user_id: str) -> str | None:
    """The id of the resource that a user with this id would belong to; None if the id has another format."""
    match = _ID.fullmatch(user_id)
    return str(uuid.UUID(match[1])) if match is not None else None


def find(tx: Tx, user_id: str) -> StackUser | None:
    """The stack user with this id; None if the resource does not exist or is suspended."""
    resource_id = resource_of(user_id)
    owner = identity.owner_of(tx, resource_id) if resource_id else None
    if owner is None or resource_id is None or owner.suspended:
        return None
    name = f"{owner.stack_name}-{owner.resource_name}"
    return StackUser(user_id, name, resource_id, owner.project, user_id.partition("-")[2] or None)


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
        resource_id = resource_of(request.params.get("AWSAccessKeyId", ""))
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
            user, now = find(tx, access), tx.now
        if user is None or not user.project.enabled:
            raise Unauthorized(_WRONG)
        ec2.check(self._users.secret_key(user.resource_id), request)
        return Principal(
            user_id=user.id,
            user_name=user.name,
            project_id=user.project.id,
            roles=frozenset((ROLE,)),
            expires_at=now + _LIFE,
            resource_id=user.resource_id,
        )


_SHAPE = re.compile(r"signal\.(?P<resource>[0-9a-f-]{36})\.(?P<proof>[0-9a-f]{64})")


class SignalTokens:
    """Creates and verifies signal tokens. ``secret`` is the site secret."""

    _use = b"stoker signal tokens"

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, self._use, hashlib.sha256)

    def token(self, resource_id: str) -> str:
        """The token for a resource."""
        return f"signal.{resource_id}.{self._proof(resource_id)}"

    def resource_of(self, token: str) -> str | None:
        """The id of the resource that the token may signal; None if the token is invalid."""
        match = _SHAPE.fullmatch(token)
        if match is None or not hmac.compare_digest(match["proof"], self._proof(match["resource"])):
            return None
        return match["resource"]

    def _proof(self, resource_id: str) -> str:
        return hmac.new(self._secret, resource_id.encode(), hashlib.sha256).hexdigest()


class CallTokens(SignalTokens):
    """
    Tokens with fewer rights: they only announce a possible result in the resource's queue. Zaqar shows them to its
    users.
    """

    _use = b"stoker call tokens"
