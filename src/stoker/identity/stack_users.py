"""
Users that stand for one resource of a stack: what agents and pre-signed URLs log in with.

Heat keeps such users, their passwords and their EC2 keys in Keystone. Here all of it is derived from the site's secret
and the resource's id: nothing is kept, nothing is left over, and they live exactly as long as their resource.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from dataclasses import dataclass

from stoker.model.principal import Project
from stoker.store import identity
from stoker.store.tx import Tx

ROLE = "heat_stack_user"
_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class StackUser:
    id: str
    name: str
    resource_id: str
    #: Its stack's.
    project: Project


class StackUsers:
    def __init__(self, secret: bytes) -> None:
        self._passwords = hmac.digest(secret, b"stoker stack users' passwords", hashlib.sha256)
        self._keys = hmac.digest(secret, b"stoker stack users' keys", hashlib.sha256)

    def password(self, resource_id: str) -> str:
        return hmac.new(self._passwords, resource_id.encode(), hashlib.sha256).hexdigest()[:32]

    def secret_key(self, resource_id: str) -> str:
        """The secret to the access key that is the user's id."""
        return hmac.new(self._keys, resource_id.encode(), hashlib.sha256).hexdigest()[:32]


def user_id(resource_id: str) -> str:
    """Also its access key."""
    return resource_id.replace("-", "")


def resource_of(user_id: str) -> str | None:
    """The id of the resource that a user of that id would stand for."""
    return str(uuid.UUID(user_id)) if _HEX.fullmatch(user_id) else None


def find(tx: Tx, user_id: str) -> StackUser | None:
    """None without such a resource, and while it is suspended."""
    resource_id = resource_of(user_id)
    owner = identity.owner_of(tx, resource_id) if resource_id else None
    if owner is None or resource_id is None or owner.suspended:
        return None
    return StackUser(user_id, f"{owner.stack_name}-{owner.resource_name}", resource_id, owner.project)
