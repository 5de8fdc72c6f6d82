"""Queries for projects, users and role assignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stoker.model.principal import Project, User
from stoker.model.status import is_suspended
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


_OWNER = (
    sa.select(
        resources.c.name.label("resource_name"),
        resources.c.action,
        resources.c.status,
        stacks.c.name.label("stack_name"),
        stacks.c.project_id.label("owner_id"),
        projects,
    )
    .join(stacks, stacks.c.id == resources.c.stack_id)
    # The projects of a Keystone are not in this table.
    .outerjoin(projects, projects.c.id == stacks.c.project_id)
    .where(resources.c.id == sa.bindparam("resource"))
)
#: A deployment without a resource has its own stack user. The deployment's id is in place of a resource's id.
_OWNER_ALONE = (
    sa.select(
        deployments.c.id.label("resource_name"),
        sa.literal("CREATE").label("action"),
        sa.literal("COMPLETE").label("status"),
        sa.literal("deployment").label("stack_name"),
        deployments.c.project_id.label("owner_id"),
        projects,
    )
    .outerjoin(projects, projects.c.id == deployments.c.project_id)
    .where(deployments.c.id == sa.bindparam("resource"), deployments.c.resource_id.is_(None))
)
_ADD_PROJECT = sa.insert(projects)
_PROJECT = sa.select(projects).where(projects.c.id == sa.bindparam("id"))
_PROJECT_NAMED = sa.select(projects).where(
    projects.c.domain_id == sa.bindparam("domain"), projects.c.name == sa.bindparam("name")
)
_PROJECTS = sa.select(projects).order_by(projects.c.name)
_PROJECTS_OF = (
    sa.select(projects)
    .where(projects.c.id.in_(sa.select(assignments.c.project_id).where(assignments.c.user_id == sa.bindparam("user"))))
    .order_by(projects.c.name)
)
_ADD_USER = sa.insert(users)
_USER = sa.select(users).where(users.c.id == sa.bindparam("id"))
_USER_NAMED = sa.select(users).where(users.c.domain_id == sa.bindparam("domain"), users.c.name == sa.bindparam("name"))
_USERS = sa.select(users).order_by(users.c.name)
_SAVE_USER = (
    sa.update(users)
    .where(users.c.id == sa.bindparam("id_"))
    .values(
        name=sa.bindparam("name"),
        password_hash=sa.bindparam("password_hash"),
        default_project_id=sa.bindparam("default_project_id"),
        enabled=sa.bindparam("enabled"),
    )
)
_DELETE_USER = sa.delete(users).where(users.c.id == sa.bindparam("id_"))
_SAVE_PROJECT = (
    sa.update(projects)
    .where(projects.c.id == sa.bindparam("id_"))
    .values(name=sa.bindparam("name"), description=sa.bindparam("description"), enabled=sa.bindparam("enabled"))
)
_DELETE_PROJECT = sa.delete(projects).where(projects.c.id == sa.bindparam("id_"))
_IN_PROJECT = {
    "stacks": sa.select(stacks.c.id).where(stacks.c.project_id == sa.bindparam("id"), stacks.c.deleted_at.is_(None)),
    "software deployments": sa.select(deployments.c.id).where(deployments.c.project_id == sa.bindparam("id")),
    "software configs": sa.select(configs.c.id).where(configs.c.project_id == sa.bindparam("id")),
    "servers": sa.select(servers.c.id).where(servers.c.project_id == sa.bindparam("id")),
    "message queues": sa.select(queues.c.id).where(queues.c.project_id == sa.bindparam("id")),
}
_DROP_ROLE = sa.delete(assignments).where(
    assignments.c.user_id == sa.bindparam("user"),
    assignments.c.project_id == sa.bindparam("project"),
    assignments.c.role == sa.bindparam("role_"),
)
_DROP_ROLES_OF = sa.delete(assignments).where(assignments.c.user_id == sa.bindparam("user"))
_DROP_ROLES_IN = sa.delete(assignments).where(assignments.c.project_id == sa.bindparam("project"))
_ASSIGNMENTS = sa.select(assignments).order_by(assignments.c.user_id, assignments.c.project_id, assignments.c.role)
_MEMBER = (
    sa.select(users.c.id)
    .join_from(assignments, users, users.c.id == assignments.c.user_id)
    .where(assignments.c.project_id == sa.bindparam("project"), assignments.c.role == "member", users.c.enabled)
    .order_by(users.c.id)
    .limit(1)
)
_ADD_SYSTEM_ROLE = sa.insert(system_assignments)
_DROP_SYSTEM_ROLE = sa.delete(system_assignments).where(
    system_assignments.c.user_id == sa.bindparam("user"), system_assignments.c.role == sa.bindparam("role_")
)
_DROP_SYSTEM_ROLES_OF = sa.delete(system_assignments).where(system_assignments.c.user_id == sa.bindparam("user"))
_SYSTEM_ROLES = sa.select(system_assignments.c.role).where(system_assignments.c.user_id == sa.bindparam("user"))
_SYSTEM_ASSIGNMENTS = sa.select(system_assignments).order_by(system_assignments.c.user_id, system_assignments.c.role)
_ADD_ROLE = sa.insert(assignments)
_ROLES = sa.select(assignments.c.role).where(
    assignments.c.user_id == sa.bindparam("user"), assignments.c.project_id == sa.bindparam("project")
)


def add_project(tx: Tx, new: Project) -> None:
    """Insert a project."""
    tx.run(
        _ADD_PROJECT,
        {
            "id": new.id,
            "name": new.name,
            "domain_id": new.domain_id,
            "description": new.description,
            "enabled": new.enabled,
        },
    )


def project(tx: Tx, id: str) -> Project | None:
    """Return the project with this id, or None."""
    row = tx.run(_PROJECT, {"id": id}).first()
    return None if row is None else _project(row)


def find_project_by_name(tx: Tx, name: str, domain_id: str) -> Project | None:
    """Return the project of the domain with this name, or None."""
    row = tx.run(_PROJECT_NAMED, {"name": name, "domain": domain_id}).first()
    return None if row is None else _project(row)


def owner_of(tx: Tx, resource_id: str) -> Owner | None:
    """
    Return the owner of the stack user of a resource, or of a deployment without a resource; None if neither exists.
    """
    said = {"resource": resource_id}
    row = tx.run(_OWNER, said).first() or tx.run(_OWNER_ALONE, said).first()
    if row is None:
        return None
    project = _project(row) if row.id else Project(id=row.owner_id, name=row.owner_id, domain_id="")
    return Owner(row.resource_name, is_suspended(row.action, row.status), row.stack_name, project)


def list_projects(tx: Tx) -> list[Project]:
    """Return all projects, sorted by name."""
    return [_project(row) for row in tx.run(_PROJECTS)]


def projects_of(tx: Tx, user_id: str) -> list[Project]:
    """Return the projects in which the user has a role, sorted by name."""
    return [_project(row) for row in tx.run(_PROJECTS_OF, {"user": user_id})]


def add_user(tx: Tx, new: User) -> None:
    """Insert a user."""
    tx.run(
        _ADD_USER,
        {
            "id": new.id,
            "name": new.name,
            "domain_id": new.domain_id,
            "password_hash": new.password_hash,
            "default_project_id": new.default_project_id,
            "enabled": new.enabled,
        },
    )


def user(tx: Tx, id: str) -> User | None:
    """Return the user with this id, or None."""
    row = tx.run(_USER, {"id": id}).first()
    return None if row is None else _user(row)


def find_user_by_name(tx: Tx, name: str, domain_id: str) -> User | None:
    """Return the user of the domain with this name, or None."""
    row = tx.run(_USER_NAMED, {"name": name, "domain": domain_id}).first()
    return None if row is None else _user(row)


def list_users(tx: Tx) -> list[User]:
    """Return all users, sorted by name."""
    return [_user(row) for row in tx.run(_USERS)]


def save_user(tx: Tx, changed: User) -> None:
    """Write the changeable columns of a user."""
    tx.run(
        _SAVE_USER,
        {
            "id_": changed.id,
            "name": changed.name,
            "password_hash": changed.password_hash,
            "default_project_id": changed.default_project_id,
            "enabled": changed.enabled,
        },
    )


def delete_user(tx: Tx, id: str) -> None:
    """Delete the user and all its role assignments."""
    tx.run(_DROP_ROLES_OF, {"user": id})
    tx.run(_DROP_SYSTEM_ROLES_OF, {"user": id})
    tx.run(_DELETE_USER, {"id_": id})


def save_project(tx: Tx, changed: Project) -> None:
    """Write the changeable columns of a project."""
    tx.run(
        _SAVE_PROJECT,
        {
            "id_": changed.id,
            "name": changed.name,
            "description": changed.description,
            "enabled": changed.enabled,
        },
    )


def delete_project(tx: Tx, id: str) -> None:
    """Delete the project and all role assignments in it."""
    tx.run(_DROP_ROLES_IN, {"project": id})
    tx.run(_DELETE_PROJECT, {"id_": id})


def in_project(tx: Tx, id: str) -> list[str]:
    """Return the kinds of objects that the project still contains, such as ``stacks``."""
    return [kind for kind, query in _IN_PROJECT.items() if tx.run(query.limit(1), {"id": id}).first() is not None]


def list_assignments(tx: Tx) -> list[tuple[str, str, str]]:
    """Return all role assignments in projects: (user id, project id, role)."""
    return [(row.user_id, row.project_id, row.role) for row in tx.run(_ASSIGNMENTS)]


def drop_role(tx: Tx, user_id: str, project_id: str, role: str) -> None:
    """Remove the user's role in a project."""
    tx.run(_DROP_ROLE, {"user": user_id, "project": project_id, "role_": role})


def add_role(tx: Tx, user_id: str, project_id: str, role: str) -> None:
    """Assign a role in a project to the user."""
    tx.run(_ADD_ROLE, {"user_id": user_id, "project_id": project_id, "role": role})


def member_of(tx: Tx, project_id: str) -> str | None:
    """Return the id of an enabled user with the role ``member`` in the project, or None."""
    found: str | None = tx.run(_MEMBER, {"project": project_id}).scalar()
    return found


def roles(tx: Tx, user_id: str, project_id: str) -> frozenset[str]:
    """Return the user's roles in a project."""
    return frozenset(tx.run(_ROLES, {"user": user_id, "project": project_id}).scalars())


def add_system_role(tx: Tx, user_id: str, role: str) -> None:
    """Assign a role for the whole site to the user."""
    tx.run(_ADD_SYSTEM_ROLE, {"user_id": user_id, "role": role})


def drop_system_role(tx: Tx, user_id: str, role: str) -> None:
    """Remove the user's role for the whole site."""
    tx.run(_DROP_SYSTEM_ROLE, {"user": user_id, "role_": role})


def system_roles(tx: Tx, user_id: str) -> frozenset[str]:
    """Return the user's roles for the whole site."""
    return frozenset(tx.run(_SYSTEM_ROLES, {"user": user_id}).scalars())


def list_system_assignments(tx: Tx) -> list[tuple[str, str]]:
    """Return all role assignments for the whole site: (user id, role)."""
    return [(row.user_id, row.role) for row in tx.run(_SYSTEM_ASSIGNMENTS)]


def _project(row: Any) -> Project:
    return Project(id=row.id, name=row.name, domain_id=row.domain_id, enabled=row.enabled, description=row.description)


def _user(row: Any) -> User:
    return User(
        id=row.id,
        name=row.name,
        domain_id=row.domain_id,
        password_hash=row.password_hash,
        default_project_id=row.default_project_id,
        enabled=row.enabled,
    )
