"""Queries for projects, users and role assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from stoker.model.principal import Project, User
from stoker.model.status import is_suspended
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import Statement, delete, equal, insert, sql
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Owner:
    """A resource with its stack and project: the owner of a stack user."""

    resource_name: str
    suspended: bool
    stack_name: str
    project: Project


_PROJECTS = Repository(Project, "projects", fixed=("domain_id",))
_PROJECT_NAMED = _PROJECTS.by("domain_id", "name")
_USERS = Repository(User, "users", fixed=("domain_id",))
_USER_NAMED = _USERS.by("domain_id", "name")
#: The projects of a Keystone are not in the table of projects.
_OWNER = sql(
    f"SELECT {_PROJECTS.columns_sql('p')}, r.name, r.action, r.status, s.name, s.project_id"
    " FROM resources r JOIN stacks s ON s.id = r.stack_id LEFT JOIN projects p ON p.id = s.project_id"
    " WHERE r.id = :resource"
)
#: A deployment without a resource has its own stack user. The deployment's id is in place of a resource's id.
_OWNER_ALONE = sql(
    f"SELECT {_PROJECTS.columns_sql('p')}, d.id, 'CREATE', 'COMPLETE', 'deployment', d.project_id"
    " FROM deployments d LEFT JOIN projects p ON p.id = d.project_id"
    " WHERE d.id = :resource AND d.resource_id IS NULL"
)
_HAS_ROLE = "id IN (SELECT project_id FROM assignments WHERE user_id = :user_id)"
_NAMES = sql("SELECT id, name FROM users WHERE id @in(ids) UNION ALL SELECT id, name FROM projects WHERE id @in(ids)")
_CONTENTS = {
    "stacks": "stacks WHERE deleted_at IS NULL AND",
    "software deployments": "deployments WHERE",
    "software configs": "configs WHERE",
    "servers": "servers WHERE",
    "message queues": "queues WHERE",
}
_IN_PROJECT = sql(
    " UNION ALL ".join(
        f"SELECT '{kind}' WHERE EXISTS (SELECT 1 FROM {those} project_id = :project_id)"
        for kind, those in _CONTENTS.items()
    )
)
_ADD_ROLE = insert("assignments", "user_id", "project_id", "role")
_ROLES = sql("SELECT role FROM assignments WHERE user_id = :user_id AND project_id = :project_id")
_DROP_ROLE = delete("assignments", "user_id", "project_id", "role")
_DROP_ROLES_OF = [delete(table, "user_id") for table in ("assignments", "system_assignments")]
_DROP_ROLES_IN = delete("assignments", "project_id")
_MEMBER = sql(
    "SELECT u.id FROM assignments a JOIN users u ON u.id = a.user_id"
    " WHERE a.project_id = :project AND a.role = 'member' AND u.enabled ORDER BY u.id LIMIT 1"
)
_ADD_SYSTEM_ROLE = insert("system_assignments", "user_id", "role")
_DROP_SYSTEM_ROLE = delete("system_assignments", "user_id", "role")
_SYSTEM_ROLES = sql("SELECT role FROM system_assignments WHERE user_id = :user_id")


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
    row = tx.execute_fast(_OWNER, values) or tx.execute_fast(_OWNER_ALONE, values)
    if row is None:
        return None
    name, action, status, stack_name, project_id = row[-5:]
    is_known = row[0] is not None
    project = _PROJECTS.decode(row, tx.secrets) if is_known else Project(id=project_id, name=project_id, domain_id="")
    return Owner(name, is_suspended(action, status), stack_name, project)


def list_projects(tx: Tx, *, user_id: str | None = None, **filters: str | bool | None) -> list[Project]:
    """
    Return the projects whose columns have the values of ``filters``, sorted by name. A filter that is None is ignored.

    ``user_id``: only projects in which this user has a role.
    """
    values = _present(filters)
    query = _select_projects(tuple(values), is_limited=user_id is not None)
    return _PROJECTS.all(tx, query, values if user_id is None else {**values, "user_id": user_id})


@cache
def _select_projects(names: tuple[str, ...], *, is_limited: bool) -> Statement:
    conditions = [equal(*names)] if names else []
    return _select(_PROJECTS, [*conditions, _HAS_ROLE] if is_limited else conditions)


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


def list_users(tx: Tx, **filters: str | bool | None) -> list[User]:
    """
    Return the users whose columns have the values of ``filters``, sorted by name. A filter that is None is ignored.
    """
    values = _present(filters)
    return _USERS.all(tx, _select_users(tuple(values)), values)


@cache
def _select_users(names: tuple[str, ...]) -> Statement:
    return _select(_USERS, [equal(*names)] if names else [])


def _select(repository: Repository[Any], conditions: Sequence[str]) -> Statement:
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return sql(f"SELECT {repository.columns_sql()} FROM {repository.table}{where} ORDER BY name")


def names(tx: Tx, ids: Iterable[str]) -> dict[str, str]:
    """Return the names of the users and projects with these ids, by id."""
    return {id: name for id, name in tx.fetch_all(_NAMES, {"ids": rows.dump(sorted(set(ids)))})}


def _present(filters: Mapping[str, str | bool | None]) -> dict[str, str | bool]:
    return {name: value for name, value in filters.items() if value is not None}


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
    return [kind for (kind,) in tx.fetch_all(_IN_PROJECT, {"project_id": id})]


def list_assignments(tx: Tx, **filters: str | None) -> list[tuple[str, str, str]]:
    """
    Return the role assignments in projects, (user id, project id, role), whose columns have the values of ``filters``.
    A filter that is None is ignored.
    """
    values = _present(filters)
    statement = _select_assignments("user_id, project_id, role FROM assignments", tuple(values))
    return [tuple(row) for row in tx.fetch_all(statement, values)]


@cache
def _select_assignments(columns: str, names: tuple[str, ...]) -> Statement:
    where = f" WHERE {equal(*names)}" if names else ""
    return sql(f"SELECT {columns}{where} ORDER BY {columns.partition(' FROM')[0]}")


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


def list_system_assignments(tx: Tx, **filters: str | None) -> list[tuple[str, str]]:
    """
    Return the role assignments for the whole site, (user id, role), whose columns have the values of ``filters``. A
    filter that is None is ignored.
    """
    values = _present(filters)
    statement = _select_assignments("user_id, role FROM system_assignments", tuple(values))
    return [tuple(row) for row in tx.fetch_all(statement, values)]
