"""
Queries for projects, users and role assignments, for their application credentials and tokens, and for used one-time
codes. The database has hashes of secrets, tokens and codes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stoker.model.principal import ApplicationCredential, Project, Token, User
from stoker.model.stack import is_suspended
from stoker.store.query import column, execute, scalar, table
from stoker.store.repository import Repository
from stoker.store.sql import compose, equal, sql
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Owner:
    """A resource with its stack and project: the owner of a stack user."""

    resource_name: str
    suspended: bool
    stack_name: str
    project: Project


_PROJECTS = Repository(Project, "projects", fixed=("domain_id",))
add_project, project, save_project = _PROJECTS.add, _PROJECTS.find, _PROJECTS.save
find_project_by_name: Callable[[Tx, str, str], Project | None] = _PROJECTS.finder(
    "name = :name AND domain_id = :domain_id"
)
_USERS = Repository(User, "users", fixed=("domain_id",))
add_user, user, save_user = _USERS.add, _USERS.find, _USERS.save
find_user_by_name: Callable[[Tx, str, str], User | None] = _USERS.finder("name = :name AND domain_id = :domain_id")
#: The projects of a Keystone are not in the table of projects.
_OWNER = sql(
    f"SELECT {_PROJECTS.columns}, r.name, r.action, r.status, s.name, s.project_id"
    " FROM resources r JOIN stacks s ON s.id = r.stack_id LEFT JOIN projects ON projects.id = s.project_id"
    " WHERE r.id = :resource"
)
#: A deployment without a resource has its own stack user. The deployment's id is in place of a resource's id.
_OWNER_ALONE = sql(
    f"SELECT {_PROJECTS.columns}, d.id, 'CREATE', 'COMPLETE', 'deployment', d.project_id"
    " FROM deployments d LEFT JOIN projects ON projects.id = d.project_id"
    " WHERE d.id = :resource AND d.resource_id IS NULL"
)
_HAS_ROLE = "id IN (SELECT project_id FROM assignments WHERE user_id = :user_id)"
_list_names: Callable[[Tx, Iterable[str]], list[tuple[str, str]]] = table(
    "SELECT id, name FROM users WHERE id @in(ids) UNION ALL SELECT id, name FROM projects WHERE id @in(ids)"
)
_CONTENTS = {
    "stacks": "stacks WHERE deleted_at IS NULL AND",
    "software deployments": "deployments WHERE",
    "software configs": "configs WHERE",
    "servers": "servers WHERE",
    "message queues": "queues WHERE",
}
#: Return the kinds of objects that a project still contains, such as ``stacks``.
in_project: Callable[[Tx, str], list[str]] = column(
    " UNION ALL ".join(
        f"SELECT '{kind}' WHERE EXISTS (SELECT 1 FROM {those} project_id = :project_id)"
        for kind, those in _CONTENTS.items()
    )
)
#: Assign a role in a project, or on the SITE, to a user: ``add_role(tx, user_id, project_id, role)``.
add_role: Callable[[Tx, str, str, str], None] = execute(
    "INSERT INTO assignments (user_id, project_id, role) VALUES (:user_id, :project_id, :role)"
)
#: Remove a role of a user, with the same arguments.
drop_role: Callable[[Tx, str, str, str], None] = execute(
    "DELETE FROM assignments WHERE user_id = :user_id AND project_id = :project_id AND role = :role"
)
_list_roles: Callable[[Tx, str, str], list[str]] = column(
    "SELECT role FROM assignments WHERE user_id = :user_id AND project_id = :project_id"
)
_drop_roles_of: Callable[[Tx, str], None] = execute("DELETE FROM assignments WHERE user_id = :user_id")
_drop_roles_in: Callable[[Tx, str], None] = execute("DELETE FROM assignments WHERE project_id = :project_id")
#: Return the id of an enabled user with the role ``member`` in a project, or None.
member_of: Callable[[Tx, str], str | None] = scalar(
    "SELECT u.id FROM assignments a JOIN users u ON u.id = a.user_id"
    " WHERE a.project_id = :project AND a.role = 'member' AND u.enabled ORDER BY u.id LIMIT 1"
)


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
    query = f"SELECT {_PROJECTS.columns} FROM projects{_where(values, *(() if user_id is None else (_HAS_ROLE,)))}"
    limit = {} if user_id is None else {"user_id": user_id}
    return _PROJECTS.all(tx, compose(f"{query} ORDER BY name"), values | limit)


def delete_project(tx: Tx, id: str) -> None:
    """Delete the project and all role assignments in it."""
    _drop_roles_in(tx, id)
    _PROJECTS.delete(tx, id)


def list_users(tx: Tx, **filters: str | bool | None) -> list[User]:
    """
    Return the users whose columns have the values of ``filters``, sorted by name. A filter that is None is ignored.
    """
    values = _present(filters)
    query = compose(f"SELECT {_USERS.columns} FROM users{_where(values)} ORDER BY name")
    return _USERS.all(tx, query, values)


def names(tx: Tx, ids: Iterable[str]) -> dict[str, str]:
    """Return the names of the users and projects with these ids, by id."""
    return dict(_list_names(tx, set(ids)))


def _present(filters: Mapping[str, str | bool | None]) -> dict[str, str | bool]:
    return {name: value for name, value in filters.items() if value is not None}


def _where(names: Iterable[str], *more: str) -> str:
    conditions = [*(equal(name) for name in names), *more]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def delete_user(tx: Tx, id: str) -> None:
    """Delete the user and all its role assignments."""
    _drop_roles_of(tx, id)
    _USERS.delete(tx, id)


def list_assignments(tx: Tx, **filters: str | None) -> list[tuple[str, str, str]]:
    """
    Return the role assignments, (user id, project id or SITE, role), whose columns have the values of ``filters``. A
    filter that is None is ignored.
    """
    values = _present(filters)
    columns = "user_id, project_id, role"
    query = compose(f"SELECT {columns} FROM assignments{_where(values)} ORDER BY {columns}")
    return [tuple(row) for row in tx.fetch_all(query, values)]


def roles(tx: Tx, user_id: str, project_id: str) -> frozenset[str]:
    """Return the user's roles in a project, or on the SITE."""
    return frozenset(_list_roles(tx, user_id, project_id))


_CREDENTIALS = Repository(ApplicationCredential, "application_credentials")
add_credential, find_credential, delete_credential = _CREDENTIALS.add, _CREDENTIALS.find, _CREDENTIALS.delete
find_credential_by_name: Callable[[Tx, str, str], ApplicationCredential | None] = _CREDENTIALS.finder(
    "user_id = :user_id AND name = :name"
)
#: Return the application credentials of a user, sorted by name.
credentials_of: Callable[[Tx, str], list[ApplicationCredential]] = _CREDENTIALS.lister(
    "user_id = :user_id ORDER BY name"
)
delete_credentials_of: Callable[[Tx, str], None] = execute(
    "DELETE FROM application_credentials WHERE user_id = :user_id"
)
#: Delete the application credentials that are valid in a project.
delete_credentials_in: Callable[[Tx, str], None] = execute(
    "DELETE FROM application_credentials WHERE project_id = :project_id"
)


_TOKENS = Repository(Token, "tokens", key=("hash",))
#: ``for_update`` locks the row of a token, so that it is not revoked until the transaction ends.
find_token = _TOKENS.find
#: Insert a token with its ``hash``.
add_token = _TOKENS.add
_drop_tokens: Callable[[Tx, Sequence[str]], None] = execute("DELETE FROM tokens WHERE hash @in(hashes)")
_list_tokens_from: Callable[[Tx, Sequence[str]], list[str]] = column(
    "SELECT hash FROM tokens WHERE parent_hash @in(hashes)"
)
drop_tokens_of: Callable[[Tx, str], None] = execute("DELETE FROM tokens WHERE user_id = :user_id")
#: Delete all tokens that have expired before a time.
drop_expired_tokens: Callable[[Tx, datetime], None] = execute("DELETE FROM tokens WHERE expires_at < :before")


def drop_token(tx: Tx, token_hash: str) -> None:
    """
    Delete a token and all tokens that were created from it, directly or indirectly.

    A transaction that creates a token locks the parent token first. Therefore a deleted token gets no more children,
    and the deletion by levels finds all of them.
    """
    level = [token_hash]
    while level:
        _drop_tokens(tx, level)
        level = _list_tokens_from(tx, level)


_drop_expired_codes: Callable[[Tx, datetime], None] = execute("DELETE FROM used_codes WHERE expires_at < :before")
_add_code: Callable[[Tx, str, datetime], str | None] = scalar(
    "INSERT INTO used_codes (hash, expires_at) VALUES (:hash, :expires_at) ON CONFLICT DO NOTHING RETURNING hash"
)


def use_code(tx: Tx, code_hash: str, expires_at: datetime) -> bool:
    """Note that a code was used. Return False if it was used before, in any process of the site."""
    _drop_expired_codes(tx, tx.now)
    return _add_code(tx, code_hash, expires_at) is not None
