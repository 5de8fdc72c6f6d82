"""Queries for stack users that Stoker creates at a Keystone: their desired and actual states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from stoker.model.status import Action, Status
from stoker.store.repository import Repository
from stoker.store.sql import sql, update
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


_WANT = sql(
    "INSERT INTO stack_users (resource_id, root_id, name, wanted, state)"
    " SELECT :resource, root_id, :name, 'enabled', '' FROM stacks WHERE id = :stack"
    " ON CONFLICT (resource_id) DO UPDATE SET wanted = 'enabled'"
)
_USERS = Repository(Row, "stack_users", key=("resource_id",), fixed=("root_id", "name", "wanted"))
_MARK = sql("UPDATE stack_users SET wanted = :wanted WHERE resource_id = :resource RETURNING resource_id")
_PENDING = sql("SELECT resource_id FROM stack_users WHERE wanted != state")
_OF_ROOT = _USERS.by("root_id")
_ANY_OF_ROOT = sql("SELECT 1 FROM stack_users WHERE root_id = :root_id LIMIT 1")
_OF_USER = sql(
    "SELECT resource_id, stack_users.user_project_id, stacks.project_id, resources.action, resources.status"
    " FROM stack_users JOIN resources ON resources.id = resource_id JOIN stacks ON stacks.id = stack_id"
    f" WHERE user_id = :user AND wanted != '{DesiredState.GONE}'"
)
_SET_PROJECT = update("stacks", "user_project_id", key=("root_id",))


def set_enabled(tx: Tx, resource_id: str, stack_id: str, name: str) -> None:
    """Request that the resource's user exists and is enabled."""
    tx.execute_fast(_WANT, {"resource": resource_id, "stack": stack_id, "name": name})


def mark(tx: Tx, resource_id: str, wanted: DesiredState) -> bool:
    """Set the desired state of a resource's user. Return False if the resource has no user."""
    return tx.execute_fast(_MARK, {"resource": resource_id, "wanted": wanted.value}) is not None


def pending(tx: Tx) -> list[str]:
    """Return the resources of all users whose state differs from the desired state."""
    return [row[0] for row in tx.fetch_all(_PENDING, {})]


def find(tx: Tx, resource_id: str) -> Row | None:
    """Return the resource's user, or None."""
    return _USERS.find(tx, resource_id)


def of_root(tx: Tx, root_id: str) -> list[Row]:
    """Return all users of a tree of stacks."""
    return _USERS.all(tx, _OF_ROOT, {"root_id": root_id})


def any_of_root(tx: Tx, root_id: str) -> bool:
    """Return whether a tree of stacks has users."""
    return tx.execute_fast(_ANY_OF_ROOT, {"root_id": root_id}) is not None


def of_user(tx: Tx, user_id: str) -> Standing | None:
    """Return the resource that a user of the Keystone represents, or None."""
    row = tx.execute_fast(_OF_USER, {"user": user_id})
    if row is None:
        return None
    resource_id, user_project_id, project_id, action, status = row
    # While the resource is being suspended, its last run still reports.
    is_suspended = action == Action.SUSPEND and status != Status.IN_PROGRESS
    return Standing(resource_id, project_id, user_project_id, is_suspended)


def save(tx: Tx, row: Row) -> None:
    """Write the actual state of a user; the desired state is not changed."""
    _USERS.save(tx, row)


def drop(tx: Tx, resource_id: str) -> None:
    """Delete the row of the resource's user."""
    _USERS.delete(tx, resource_id)


def set_project(tx: Tx, root_id: str, user_project_id: str) -> None:
    """Set the project for users in all stacks of a tree. The transaction has locked the root stack."""
    tx.cache.clear()
    tx.execute_fast(_SET_PROJECT, {"key_root_id": root_id, "user_project_id": user_project_id})
