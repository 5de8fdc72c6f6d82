"""Queries for delegations: how Stoker acts at Keystone for the owners of stacks."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from stoker.store.query import column
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
#: Find a delegation or an application credential, or delete its row.
find, delete = _DELEGATIONS.find, _DELEGATIONS.delete
find_credential, delete_credential = _CREDENTIALS.find, _CREDENTIALS.delete
#: Return the delegation of a tree of stacks that is in use, or None.
active: Callable[[Tx, str], Delegation | None] = _DELEGATIONS.finder("root_id = :root_id AND NOT is_ended")
#: Return all delegations that are in use.
all_active: Callable[[Tx], list[Delegation]] = _DELEGATIONS.lister("NOT is_ended ORDER BY id")
_list_all: Callable[[Tx], list[Delegation]] = _DELEGATIONS.lister("true")
#: Return the ids of all delegations.
all_ids: Callable[[Tx], list[str]] = column("SELECT id FROM delegations")
#: Return the delegations that use an application credential, with ended ones.
of_credential: Callable[[Tx, str], list[Delegation]] = _DELEGATIONS.lister("credential_id = :credential_id")
_of_user: Callable[[Tx, str, str], list[Delegation]] = _DELEGATIONS.lister(
    "project_id = :project_id AND user_id = :user_id ORDER BY id"
)
_USABLE = _CREDENTIALS.select("user_id = :user_id AND project_id = :project_id AND NOT is_ended ORDER BY id")
#: Return the delegations in use whose stack does not exist and has no objects at the cloud.
unused: Callable[[Tx], list[Delegation]] = _DELEGATIONS.lister(
    "NOT is_ended"
    " AND NOT EXISTS (SELECT 1 FROM stacks WHERE stacks.id = delegations.root_id AND stacks.deleted_at IS NULL)"
    " AND NOT EXISTS (SELECT 1 FROM cloud_objects WHERE cloud_objects.root_id = delegations.root_id) ORDER BY id"
)


def trust_ids(tx: Tx) -> set[str]:
    """Return the ids of the trusts of all delegations."""
    return {item.trust_id for item in _list_all(tx) if item.trust_id is not None}


def lock_sharing(tx: Tx, delegation: Delegation) -> list[Delegation]:
    """Lock and return the delegations that have the same trust, with ended ones."""
    for item in _sharing(tx, delegation):
        find(tx, item.id, for_update=True)
    # Another transaction may have changed or added one before it released its lock.
    return _sharing(tx, delegation)


def add(tx: Tx, new: Delegation) -> None:
    """Insert a delegation."""
    _DELEGATIONS.add(tx, new, encrypt=_secret(new))


def save(tx: Tx, changed: Delegation) -> None:
    """Write a delegation."""
    _DELEGATIONS.save(tx, changed, encrypt=_secret(changed))


def usable_credentials(tx: Tx, user_id: str, project_id: str) -> list[CloudCredential]:
    """Lock and return the application credentials that stacks of a user in a project may use."""
    return _CREDENTIALS.all(tx, _USABLE, {"user_id": user_id, "project_id": project_id}, for_update=True)


def add_credential(tx: Tx, new: CloudCredential) -> None:
    """Insert an application credential."""
    _CREDENTIALS.add(tx, new, encrypt=("secret",))


def save_credential(tx: Tx, changed: CloudCredential) -> None:
    """Write an application credential."""
    _CREDENTIALS.save(tx, changed, encrypt=("secret",))


def _sharing(tx: Tx, delegation: Delegation) -> list[Delegation]:
    # The column is encrypted, so no statement can compare it.
    of_user = _of_user(tx, delegation.project_id, delegation.user_id)
    return [item for item in of_user if item.trust_id == delegation.trust_id]


def _secret(item: Delegation) -> tuple[str, ...]:
    return () if item.trust_id is None else ("trust_id",)
