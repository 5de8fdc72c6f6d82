"""
Stack users: each belongs to one resource of a stack, and agents and pre-signed URLs log in with it.

Heat keeps these users, their passwords and their EC2 keys in Keystone. Stoker derives them from the site secret and the
resource's id: nothing is stored, nothing has to be cleaned up, and a user exists exactly as long as its resource.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from dataclasses import dataclass

from stoker.model.principal import Project
from stoker.model.secrets import CREDENTIAL_PREFIX
from stoker.store import identity
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
