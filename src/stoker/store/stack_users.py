"""Queries for stack users that Stoker creates at a Keystone: their desired and actual states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from stoker.model.status import Action, Status
from stoker.store.schema import resources, stack_users, stacks
from stoker.store.tx import Tx


class DesiredState(StrEnum):
    """The state that a user at the Keystone should have."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
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


_WANT = sa.text(
    "INSERT INTO stack_users (resource_id, root_id, name, wanted, state)"
    " SELECT :resource, root_id, :name, 'enabled', '' FROM stacks WHERE id = :stack"
    " ON CONFLICT (resource_id) DO UPDATE SET wanted = 'enabled'"
)
_MARK = (
    sa.update(stack_users)
    .where(stack_users.c.resource_id == sa.bindparam("resource"))
    .values(wanted=sa.bindparam("wanted_"))
)
_PENDING = sa.select(stack_users.c.resource_id).where(stack_users.c.wanted != stack_users.c.state)
_FIND = sa.select(stack_users).where(stack_users.c.resource_id == sa.bindparam("resource"))
_OF_ROOT = sa.select(stack_users).where(stack_users.c.root_id == sa.bindparam("root"))
_ANY_OF_ROOT = _OF_ROOT.limit(1)
_OF_USER = (
    sa.select(
        stack_users.c.resource_id,
        stack_users.c.user_project_id,
        stacks.c.project_id,
        resources.c.action,
        resources.c.status,
    )
    .join(resources, resources.c.id == stack_users.c.resource_id)
    .join(stacks, stacks.c.id == resources.c.stack_id)
    .where(stack_users.c.user_id == sa.bindparam("user"), stack_users.c.wanted != DesiredState.GONE.value)
)
_MADE = (
    sa.update(stack_users)
    .where(stack_users.c.resource_id == sa.bindparam("resource"))
    .values(
        user_id=sa.bindparam("user"),
        user_project_id=sa.bindparam("project"),
        domain_id=sa.bindparam("domain"),
        state=sa.bindparam("state_"),
    )
)
_DROP = sa.delete(stack_users).where(stack_users.c.resource_id == sa.bindparam("resource"))
_SET_PROJECT = (
    sa.update(stacks)
    .where(stacks.c.root_id == sa.bindparam("root"))
    .values(user_project_id=sa.bindparam("user_project"))
)


def set_enabled(tx: Tx, resource_id: str, stack_id: str, name: str) -> None:
    """Request that the resource's user exists and is enabled."""
    tx.run(_WANT, {"resource": resource_id, "stack": stack_id, "name": name})


def mark(tx: Tx, resource_id: str, wanted: DesiredState) -> bool:
    """Set the desired state of a resource's user. Return False if the resource has no user."""
    return bool(tx.run(_MARK, {"resource": resource_id, "wanted_": wanted.value}).rowcount)


def pending(tx: Tx) -> list[str]:
    """Return the resources of all users whose state differs from the desired state."""
    return list(tx.run(_PENDING).scalars())


def find(tx: Tx, resource_id: str) -> Row | None:
    """Return the resource's user, or None."""
    row = tx.run(_FIND, {"resource": resource_id}).first()
    return None if row is None else _row(row)


def of_root(tx: Tx, root_id: str) -> list[Row]:
    """Return all users of a tree of stacks."""
    return [_row(row) for row in tx.run(_OF_ROOT, {"root": root_id})]


def any_of_root(tx: Tx, root_id: str) -> bool:
    """Return whether a tree of stacks has users."""
    return tx.run(_ANY_OF_ROOT, {"root": root_id}).first() is not None


def of_user(tx: Tx, user_id: str) -> Standing | None:
    """Return the resource that a user of the Keystone represents, or None."""
    row = tx.run(_OF_USER, {"user": user_id}).first()
    if row is None:
        return None
    # While the resource is being suspended, its last run still reports.
    resting = row.action == Action.SUSPEND and row.status != Status.IN_PROGRESS
    return Standing(row.resource_id, row.project_id, row.user_project_id, resting)


def save(tx: Tx, row: Row) -> None:
    """Write the actual state of a user; the desired state is not changed."""
    tx.run(
        _MADE,
        {
            "resource": row.resource_id,
            "user": row.user_id,
            "project": row.user_project_id,
            "domain": row.domain_id,
            "state_": row.state,
        },
    )


def drop(tx: Tx, resource_id: str) -> None:
    """Delete the row of the resource's user."""
    tx.run(_DROP, {"resource": resource_id})


def set_project(tx: Tx, root_id: str, user_project_id: str) -> None:
    """Set the project for users in all stacks of a tree. The transaction has locked the root stack."""
    tx.run(_SET_PROJECT, {"root": root_id, "user_project": user_project_id})


def _row(row: Any) -> Row:
    return Row(
        resource_id=row.resource_id,
        root_id=row.root_id,
        name=row.name,
        user_id=row.user_id,
        user_project_id=row.user_project_id,
        domain_id=row.domain_id,
        wanted=DesiredState(row.wanted),
        state=row.state,
    )
