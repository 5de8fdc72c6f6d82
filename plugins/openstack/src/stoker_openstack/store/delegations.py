"""Queries for delegations: by which credentials Stoker acts at Keystone for the owners of stacks."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from stoker.store.query import column
from stoker.store.repository import Repository
from stoker.store.tx import Tx

#: The ways of delegation, as the setting ``stack_delegation`` names them.
TRUST, APPLICATION_CREDENTIAL = "TRUST", "APPLICATION_CREDENTIAL"


class Delegation(Struct, frozen=True, kw_only=True):
    """The delegation of a tree of stacks, by a credential that other trees may share."""

    id: str
    root_id: str
    credential_id: str
    is_ended: bool = True


class CloudCredential(Struct, frozen=True, kw_only=True):
    """
    A trust of a user in a project, or an application credential. ``roles``: the ids of its roles.

    ``secret`` is the id of the trust, empty before Keystone has answered, or the secret of the application credential.
    """

    id: str
    way: str
    project_id: str
    user_id: str
    roles: tuple[str, ...]
    secret: str = ""
    is_ended: bool = False

    def __repr__(self) -> str:
        return f"CloudCredential({self.id!r})"  # logs and tracebacks show objects


_DELEGATIONS = Repository(Delegation, "delegations", fixed=("root_id", "credential_id"))
_CREDENTIALS = Repository(CloudCredential, "cloud_credentials", fixed=("way", "project_id", "user_id", "roles"))
#: Add, find, change or delete a delegation; find, get or delete a credential.
add, find, save, delete = _DELEGATIONS.add, _DELEGATIONS.find, _DELEGATIONS.save, _DELEGATIONS.delete
find_credential, get_credential, delete_credential = _CREDENTIALS.find, _CREDENTIALS.get, _CREDENTIALS.delete
#: Return the delegation of a tree of stacks that is in use, or None.
active: Callable[[Tx, str], Delegation | None] = _DELEGATIONS.finder("root_id = :root_id AND NOT is_ended")
#: Return all delegations, or those that use a credential, with ended ones.
list_all: Callable[[Tx], list[Delegation]] = _DELEGATIONS.lister("true")
of_credential: Callable[[Tx, str], list[Delegation]] = _DELEGATIONS.lister("credential_id = :credential_id")
#: Return the ids of all credentials.
credential_ids: Callable[[Tx], list[str]] = column("SELECT id FROM cloud_credentials")
_USABLE = _CREDENTIALS.select(
    "user_id = :user_id AND project_id = :project_id AND way = :way AND NOT is_ended ORDER BY id"
)
#: Return the credentials that delegations in use have.
credentials_in_use: Callable[[Tx], list[CloudCredential]] = _CREDENTIALS.lister(
    "id IN (SELECT credential_id FROM delegations WHERE NOT is_ended) ORDER BY id"
)
#: Return the delegations in use whose stack does not exist and has no objects at the cloud.
unused: Callable[[Tx], list[Delegation]] = _DELEGATIONS.lister(
    "NOT is_ended"
    " AND NOT EXISTS (SELECT 1 FROM stacks WHERE stacks.id = delegations.root_id AND stacks.deleted_at IS NULL)"
    " AND NOT EXISTS (SELECT 1 FROM cloud_objects WHERE cloud_objects.root_id = delegations.root_id) ORDER BY id"
)


def usable_credentials(tx: Tx, user_id: str, project_id: str, way: str) -> list[CloudCredential]:
    """Lock and return the credentials of a user in a project that further stacks may share."""
    return _CREDENTIALS.all(tx, _USABLE, {"user_id": user_id, "project_id": project_id, "way": way}, for_update=True)


def add_credential(tx: Tx, new: CloudCredential) -> None:
    """Insert a credential."""
    _CREDENTIALS.add(tx, new, encrypt=("secret",))


def save_credential(tx: Tx, changed: CloudCredential) -> None:
    """Write a credential."""
    _CREDENTIALS.save(tx, changed, encrypt=("secret",))
