"""Projects, users, role assignments and tokens in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.principal import Project, User
from stoker.store import rows
from stoker.store.schema import assignments, projects, tokens, users
from stoker.store.tx import Tx

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
_PASSWORD = sa.update(users).where(users.c.id == sa.bindparam("id_")).values(password_hash=sa.bindparam("hash"))
_ADD_ROLE = sa.insert(assignments)
_ROLES = sa.select(assignments.c.role).where(
    assignments.c.user_id == sa.bindparam("user"), assignments.c.project_id == sa.bindparam("project")
)
_ADD_TOKEN = sa.insert(tokens)
_TOKEN = sa.select(tokens).where(tokens.c.hash == sa.bindparam("hash"))
_DROP_TOKEN = sa.delete(tokens).where(tokens.c.hash == sa.bindparam("hash"))
_DROP_TOKENS_OF = sa.delete(tokens).where(tokens.c.user_id == sa.bindparam("user"))
_DROP_EXPIRED = sa.delete(tokens).where(tokens.c.expires_at < sa.bindparam("now"))


def add_project(tx: Tx, new: Project) -> None:
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
    row = tx.run(_PROJECT, {"id": id}).first()
    return None if row is None else _project(row)


def project_named(tx: Tx, name: str, domain_id: str) -> Project | None:
    row = tx.run(_PROJECT_NAMED, {"name": name, "domain": domain_id}).first()
    return None if row is None else _project(row)


def projects_listed(tx: Tx) -> list[Project]:
    return [_project(row) for row in tx.run(_PROJECTS)]


def projects_of(tx: Tx, user_id: str) -> list[Project]:
    return [_project(row) for row in tx.run(_PROJECTS_OF, {"user": user_id})]


def add_user(tx: Tx, new: User) -> None:
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
    row = tx.run(_USER, {"id": id}).first()
    return None if row is None else _user(row)


def user_named(tx: Tx, name: str, domain_id: str) -> User | None:
    row = tx.run(_USER_NAMED, {"name": name, "domain": domain_id}).first()
    return None if row is None else _user(row)


def users_listed(tx: Tx) -> list[User]:
    return [_user(row) for row in tx.run(_USERS)]


def set_password(tx: Tx, user_id: str, password_hash: str) -> None:
    tx.run(_PASSWORD, {"id_": user_id, "hash": password_hash})


def add_role(tx: Tx, user_id: str, project_id: str, role: str) -> None:
    tx.run(_ADD_ROLE, {"user_id": user_id, "project_id": project_id, "role": role})


def roles(tx: Tx, user_id: str, project_id: str) -> frozenset[str]:
    return frozenset(tx.run(_ROLES, {"user": user_id, "project": project_id}).scalars())


def add_token(
    tx: Tx, token_hash: str, *, user_id: str, project_id: str | None, issued_at: datetime, expires_at: datetime
) -> None:
    tx.run(
        _ADD_TOKEN,
        {
            "hash": token_hash,
            "user_id": user_id,
            "project_id": project_id,
            "issued_at": rows.stamp(issued_at),
            "expires_at": rows.stamp(expires_at),
        },
    )


def token(tx: Tx, token_hash: str) -> tuple[str, str | None, datetime, datetime] | None:
    """(user id, project id, issued at, expires at)"""
    row = tx.run(_TOKEN, {"hash": token_hash}).first()
    return row and (row.user_id, row.project_id, rows.moment(row.issued_at), rows.moment(row.expires_at))


def drop_token(tx: Tx, token_hash: str) -> None:
    tx.run(_DROP_TOKEN, {"hash": token_hash})


def drop_tokens_of(tx: Tx, user_id: str) -> None:
    tx.run(_DROP_TOKENS_OF, {"user": user_id})


def drop_expired_tokens(tx: Tx, now: datetime) -> None:
    tx.run(_DROP_EXPIRED, {"now": rows.stamp(now)})


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
