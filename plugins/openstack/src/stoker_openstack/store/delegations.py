"""Queries for delegations: how Stoker acts at Keystone for the owners of stacks."""

from __future__ import annotations

from msgspec import Struct

from stoker.store.repository import Repository
from stoker.store.tx import Tx


class Delegation(Struct, frozen=True, kw_only=True):
    """
    The delegation of a tree of stacks: a trust of the user, or the application credential ``credential_id``.

    ``trust_id`` is None before Keystone has answered.
    """

    id: str
    root_id: str
    project_id: str
    user_id: str
    trust_id: str | None = None
    credential_id: str | None = None
    is_ended: bool = True


class CloudCredential(Struct, frozen=True, kw_only=True):
    """An application credential of a user in a project. ``roles``: the ids of its roles."""

    id: str
    project_id: str
    user_id: str
    roles: tuple[str, ...]
    secret: str
    is_ended: bool = False

    def __repr__(self) -> str:
        return f"CloudCredential({self.id!r})"  # logs and tracebacks show objects


_DELEGATIONS = Repository(Delegation, "delegations", fixed=("root_id", "project_id", "user_id", "credential_id"))
_CREDENTIALS = Repository(CloudCredential, "cloud_credentials", fixed=("project_id", "user_id", "roles"))
_ACTIVE = _DELEGATIONS.select("root_id = :root_id AND NOT is_ended")
_ALL_ACTIVE = _DELEGATIONS.select("NOT is_ended ORDER BY id")
_ALL = _DELEGATIONS.select("true")
_OF_CREDENTIAL = _DELEGATIONS.select("credential_id = :credential_id")
_OF_USER = _DELEGATIONS.select("project_id = :project_id AND user_id = :user_id ORDER BY id")
_USABLE = _CREDENTIALS.select("user_id = :user_id AND project_id = :project_id AND NOT is_ended ORDER BY id")
_UNUSED = _DELEGATIONS.select(
    "NOT is_ended"
    " AND NOT EXISTS (SELECT 1 FROM stacks WHERE stacks.id = delegations.root_id AND stacks.deleted_at IS NULL)"
    " AND NOT EXISTS (SELECT 1 FROM cloud_objects WHERE cloud_objects.root_id = delegations.root_id) ORDER BY id"
)


def find(tx: Tx, id: str, *, for_update: bool = False) -> Delegation | None:
    """Return a delegation, or None."""
    return _DELEGATIONS.find(tx, id, for_update=for_update)


def active(tx: Tx, root_id: str) -> Delegation | None:
    """Return the delegation of a tree of stacks that is in use, or None."""
    return _DELEGATIONS.first(tx, _ACTIVE, {"root_id": root_id})


def all_active(tx: Tx) -> list[Delegation]:
    """Return all delegations that are in use."""
    return _DELEGATIONS.all(tx, _ALL_ACTIVE, {})


def unused(tx: Tx) -> list[Delegation]:
    """Return the delegations in use whose stack does not exist and has no objects at the cloud."""
    return _DELEGATIONS.all(tx, _UNUSED, {})


def all_ids(tx: Tx) -> set[str]:
    """Return the ids of all delegations."""
    return {item.id for item in _DELEGATIONS.all(tx, _ALL, {})}


def trust_ids(tx: Tx) -> set[str]:
    """Return the ids of the trusts of all delegations."""
    return {item.trust_id for item in _DELEGATIONS.all(tx, _ALL, {}) if item.trust_id is not None}


def lock_sharing(tx: Tx, delegation: Delegation) -> list[Delegation]:
    """Lock and return the delegations that have the same trust, with ended ones."""
    for item in _sharing(tx, delegation):
        find(tx, item.id, for_update=True)
    # Another transaction may have changed or added one before it released its lock.
    return _sharing(tx, delegation)


def of_credential(tx: Tx, credential_id: str) -> list[Delegation]:
    """Return the delegations that use an application credential, with ended ones."""
    return _DELEGATIONS.all(tx, _OF_CREDENTIAL, {"credential_id": credential_id})


def add(tx: Tx, new: Delegation) -> None:
    """Insert a delegation."""
    _DELEGATIONS.add(tx, new, encrypt=_secret(new))


def save(tx: Tx, changed: Delegation) -> None:
    """Write a delegation."""
    _DELEGATIONS.save(tx, changed, encrypt=_secret(changed))


def delete(tx: Tx, id: str) -> None:
    """Delete the row of a delegation."""
    _DELEGATIONS.delete(tx, id)


def find_credential(tx: Tx, id: str, *, for_update: bool = False) -> CloudCredential | None:
    """Return an application credential, or None."""
    return _CREDENTIALS.find(tx, id, for_update=for_update)


def usable_credentials(tx: Tx, user_id: str, project_id: str) -> list[CloudCredential]:
    """Lock and return the application credentials that stacks of a user in a project may use."""
    return _CREDENTIALS.all(tx, _USABLE, {"user_id": user_id, "project_id": project_id}, for_update=True)


def add_credential(tx: Tx, new: CloudCredential) -> None:
    """Insert an application credential."""
    _CREDENTIALS.add(tx, new, encrypt=("secret",))


def save_credential(tx: Tx, changed: CloudCredential) -> None:
    """Write an application credential."""
    _CREDENTIALS.save(tx, changed, encrypt=("secret",))


def delete_credential(tx: Tx, id: str) -> None:
    """Delete the row of an application credential."""
    _CREDENTIALS.delete(tx, id)


def _sharing(tx: Tx, delegation: Delegation) -> list[Delegation]:
    owner = {"project_id": delegation.project_id, "user_id": delegation.user_id}
    # The column is encrypted, so no statement can compare it.
    return [item for item in _DELEGATIONS.all(tx, _OF_USER, owner) if item.trust_id == delegation.trust_id]


def _secret(item: Delegation) -> tuple[str, ...]:
    return () if item.trust_id is None else ("trust_id",)
