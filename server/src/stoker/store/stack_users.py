"""Queries for stack users that Stoker creates at a Keystone: their desired and actual states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from stoker.model.stack import is_suspended
from stoker.store.query import column, execute, exists
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx


class DesiredState(StrEnum):
    """The state that a user at the Keystone should have."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    GONE = "gone"


class Row(Struct, frozen=True, kw_only=True):
    """A stack user. ``name`` is the name of the user at the Keystone."""

    resource_id: str
    root_id: str
    name: str
    user_id: str | None
    user_project_id: str | None
    domain_id: str | None
    wanted: DesiredState
    #: Empty until the user exists.
    state: str


@dataclass(frozen=True, slots=True)
class Standing:
    """The resource that a user represents, with its project. ``resting``: the resource is suspended."""

    resource_id: str
    project_id: str
    user_project_id: str | None
    resting: bool


#: Request that a resource's user exists and is enabled: (transaction, resource id, name, stack id).
set_enabled: Callable[[Tx, str, str, str], None] = execute(
    "INSERT INTO stack_users (resource_id, root_id, name, wanted, state)"
    " SELECT :resource, root_id, :name, 'enabled', '' FROM stacks WHERE id = :stack"
    " ON CONFLICT (resource_id) DO UPDATE SET wanted = 'enabled'"
)
_USERS = Repository(Row, "stack_users", key=("resource_id",), fixed=("root_id", "name", "wanted"))
find, save, drop = _USERS.find, _USERS.save, _USERS.delete
#: Set the desired state of a resource's user; return False if the resource has no user.
mark: Callable[[Tx, DesiredState, str], bool] = exists(
    "UPDATE stack_users SET wanted = :wanted WHERE resource_id = :resource RETURNING resource_id"
)
#: Return the resources of all users whose state differs from the desired state.
pending: Callable[[Tx], list[str]] = column("SELECT resource_id FROM stack_users WHERE wanted != state")
#: Return all users of a tree of stacks, and whether it has any.
of_root: Callable[[Tx, str], list[Row]] = _USERS.lister("root_id = :root_id")
any_of_root: Callable[[Tx, str], bool] = exists("SELECT 1 FROM stack_users WHERE root_id = :root_id LIMIT 1")
_OF_USER = sql(
    "SELECT resource_id, stack_users.user_project_id, stacks.project_id, resources.action, resources.status"
    " FROM stack_users JOIN resources ON resources.id = resource_id JOIN stacks ON stacks.id = stack_id"
    f" WHERE user_id = :user AND wanted != '{DesiredState.GONE}'"
)
_set_project: Callable[[Tx, str, str], None] = execute(
    "UPDATE stacks SET user_project_id = :user_project_id WHERE root_id = :root_id"
)


def of_user(tx: Tx, user_id: str) -> Standing | None:
    """Return the resource that a user of the Keystone represents, or None."""
    row = tx.execute_fast(_OF_USER, {"user": user_id})
    if row is None:
        return None
    resource_id, user_project_id, project_id, action, status = row
    return Standing(resource_id, project_id, user_project_id, is_suspended(action, status))


def set_project(tx: Tx, root_id: str, user_project_id: str) -> None:
    """Set the project for users in all stacks of a tree. The transaction has locked the root stack."""
    tx.cache.clear()
    _set_project(tx, user_project_id, root_id)
