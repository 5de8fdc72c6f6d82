"""Who is asking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    id: str
    name: str
    domain_id: str
    password_hash: str
    default_project_id: str | None
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    id: str
    name: str
    domain_id: str
    enabled: bool = True
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A validated token: a user acting in one project (None: unscoped) with the roles held there."""

    user_id: str
    user_name: str
    project_id: str | None
    roles: frozenset[str]
    expires_at: datetime
