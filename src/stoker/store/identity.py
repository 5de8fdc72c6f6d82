"""Queries for projects, users and role assignments."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from stoker.model.principal import Project, User
from stoker.model.status import is_suspended
from stoker.store import statements
from stoker.store.repository import Repository
from stoker.store.schema import (
    assignments,
    configs,
    deployments,
    projects,
    queues,
    resources,
    servers,
    stacks,
    system_assignments,
    users,
)
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Owner:
    """A resource with its stack and project: the owner of a stack user."""

    resource_name: str
    suspended: bool
    stack_name: str
    project: Project


_PROJECTS = Repository(Project, projects, fixed=("domain_id",))
_PROJECT_NAMED = _PROJECTS.by("domain_id", "name")
_ALL_PROJECTS = _PROJECTS.select().order_by(projects.c.name)
_USERS = Repository(User, users, fixed=("domain_id",))
_OWNER = (
    sa.select(
        *_PROJECTS.columns,
        resources.c.name.label("resource_name"),
        resources.c.action,
        resources.c.status,
        stacks.c.name.label("stack_name"),
        stacks.c.project_id.label("owner_id"),
    )
    .join(stacks, stacks.c.id == resources.c.stack_id)
    # The projects of a Keystone are not in this table.
    .outerjoin(projects, projects.c.id == stacks.c.project_id)
    .where(resources.c.id == sa.bindparam("resource"))
)
#: A deployment without a resource has its own stack user. The deployment's id is in place of a resource's id.
_OWNER_ALONE = (
    sa.select(
        *_PROJECTS.columns,
        deployments.c.id.label("resource_name"),
        sa.literal("CREATE").label("action"),
        sa.literal("COMPLETE").label("status"),
        sa.literal("deployment").label("stack_name"),
        deployments.c.project_id.label("owner_id"),
    )
    .outerjoin(projects, projects.c.id == deployments.c.project_id)
    .where(deployments.c.id == sa.bindparam("resource"), deployments.c.resource_id.is_(None))
)
_PROJECTS_OF = _PROJECTS.select(
    projects.c.id.in_(sa.select(assignments.c.project_id).where(*statements.equal(assignments, "user_id")))
).order_by(projects.c.name)
_USER_NAMED = _USERS.by("domain_id", "name")
_ALL_USERS = _USERS.select().order_by(users.c.name)
_IN_PROJECT = {
    kind: sa.select(sa.literal(1)).where(*statements.equal(table, "project_id"), *conditions).limit(1)
    for kind, table, *conditions in (
        ("stacks", stacks, stacks.c.deleted_at.is_(None)),
        ("software deployments", deployments),
        ("software configs", configs),
        ("servers", servers),
        ("message queues", queues),
    )
}
_DROP_ROLE = statements.delete(assignments, "user_id", "project_id", "role")
_DROP_ROLES_OF = [statements.delete(table, "user_id") for table in (assignments, system_assignments)]
_DROP_ROLES_IN = statements.delete(assignments, "project_id")
_ASSIGNMENTS = sa.select(assignments).order_by(assignments.c.user_id, assignments.c.project_id, assignments.c.role)
_MEMBER = (
    sa.select(users.c.id)
    .join_from(assignments, users, users.c.id == assignments.c.user_id)
    .where(assignments.c.project_id == sa.bindparam("project"), assignments.c.role == "member", users.c.enabled)
    .order_by(users.c.id)
    .limit(1)
)
_ADD_SYSTEM_ROLE = sa.insert(system_assignments)
_DROP_SYSTEM_ROLE = statements.delete(system_assignments, "user_id", "role")
_SYSTEM_ROLES = sa.select(system_assignments.c.role).where(*statements.equal(system_assignments, "user_id"))
_SYSTEM_ASSIGNMENTS = sa.select(system_assignments).order_by(system_assignments.c.user_id, system_assignments.c.role)
_ADD_ROLE = sa.insert(assignments)
_ROLES = sa.select(assignments.c.role).where(*statements.equal(assignments, "user_id", "project_id"))


def add_project(tx: Tx, new: Project) -> None:
    """Insert a project."""
    _PROJECTS.add(tx, new)


def project(tx: Tx, id: str) -> Project | None:
    """Return the project with this id, or None."""
    return _PROJECTS.find(tx, id)


def find_project_by_name(tx: Tx, name: str, domain_id: str) -> Project | None:
    """Return the project of the domain with this name, or None."""
    return _PROJECTS.first(tx, _PROJECT_NAMED, {"name": name, "domain_id": domain_id})


def owner_of(tx: Tx, resource_id: str) -> Owner | None:
    """
    Return the owner of the stack user of a resource, or of a deployment without a resource; None if neither exists.
    """
    values = {"resource": resource_id}
    row = tx.run(_OWNER, values).first() or tx.run(_OWNER_ALONE, values).first()
    if row is None:
        return None
    is_known = row.id is not None
    project = (
        _PROJECTS.decode(row, tx.secrets) if is_known else Project(id=row.owner_id, name=row.owner_id, domain_id="")
    )
    return Owner(row.resource_name, is_suspended(row.action, row.status), row.stack_name, project)


def list_projects(tx: Tx) -> list[Project]:
    """Return all projects, sorted by name."""
    return _PROJECTS.all(tx, _ALL_PROJECTS, {})


def projects_of(tx: Tx, user_id: str) -> list[Project]:
    """Return the projects in which the user has a role, sorted by name."""
    return _PROJECTS.all(tx, _PROJECTS_OF, {"user_id": user_id})


def save_project(tx: Tx, changed: Project) -> None:
    """Write the changeable columns of a project."""
    _PROJECTS.save(tx, changed)


def delete_project(tx: Tx, id: str) -> None:
    """Delete the project and all role assignments in it."""
    tx.execute_fast(_DROP_ROLES_IN, {"project_id": id})
    _PROJECTS.delete(tx, id)


def add_user(tx: Tx, new: User) -> None:
    """Insert a user."""
    _USERS.add(tx, new)


def user(tx: Tx, id: str) -> User | None:
    """Return the user with this id, or None."""
    return _USERS.find(tx, id)


def find_user_by_name(tx: Tx, name: str, domain_id: str) -> User | None:
    """Return the user of the domain with this name, or None."""
    return _USERS.first(tx, _USER_NAMED, {"name": name, "domain_id": domain_id})


def list_users(tx: Tx) -> list[User]:
    """Return all users, sorted by name."""
    return _USERS.all(tx, _ALL_USERS, {})


def save_user(tx: Tx, changed: User) -> None:
    """Write the changeable columns of a user."""
    _USERS.save(tx, changed)


def delete_user(tx: Tx, id: str) -> None:
    """Delete the user and all its role assignments."""
    for statement in _DROP_ROLES_OF:
        tx.execute_fast(statement, {"user_id": id})
    _USERS.delete(tx, id)


def in_project(tx: Tx, id: str) -> list[str]:
    """Return the kinds of objects that the project still contains, such as ``stacks``."""
    return [kind for kind, query in _IN_PROJECT.items() if tx.execute_fast(query, {"project_id": id}) is not None]


def list_assignments(tx: Tx) -> list[tuple[str, str, str]]:
    """Return all role assignments in projects: (user id, project id, role)."""
    return [(user_id, project_id, role) for user_id, project_id, role in tx.fetch_all(_ASSIGNMENTS, {})]


def drop_role(tx: Tx, user_id: str, project_id: str, role: str) -> None:
    """Remove the user's role in a project."""
    tx.execute_fast(_DROP_ROLE, {"user_id": user_id, "project_id": project_id, "role": role})


def add_role(tx: Tx, user_id: str, project_id: str, role: str) -> None:
    """Assign a role in a project to the user."""
    tx.execute_fast(_ADD_ROLE, {"user_id": user_id, "project_id": project_id, "role": role})


def member_of(tx: Tx, project_id: str) -> str | None:
    """Return the id of an enabled user with the role ``member`` in the project, or None."""
    user_id: str | None = tx.scalar(_MEMBER, {"project": project_id})
    return user_id


def roles(tx: Tx, user_id: str, project_id: str) -> frozenset[str]:
    """Return the user's roles in a project."""
    return frozenset(row[0] for row in tx.fetch_all(_ROLES, {"user_id": user_id, "project_id": project_id}))


def add_system_role(tx: Tx, user_id: str, role: str) -> None:
    """Assign a role for the whole site to the user."""
    tx.execute_fast(_ADD_SYSTEM_ROLE, {"user_id": user_id, "role": role})


def drop_system_role(tx: Tx, user_id: str, role: str) -> None:
    """Remove the user's role for the whole site."""
    tx.execute_fast(_DROP_SYSTEM_ROLE, {"user_id": user_id, "role": role})


def system_roles(tx: Tx, user_id: str) -> frozenset[str]:
    """Return the user's roles for the whole site."""
    return frozenset(row[0] for row in tx.fetch_all(_SYSTEM_ROLES, {"user_id": user_id}))


def list_system_assignments(tx: Tx) -> list[tuple[str, str]]:
    """Return all role assignments for the whole site: (user id, role)."""
    return [(user_id, role) for user_id, role in tx.fetch_all(_SYSTEM_ASSIGNMENTS, {})]
