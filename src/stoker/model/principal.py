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
class ApplicationCredential:
    """A secret of a program's own, that does what its user lets it do in one project."""

    id: str
    user_id: str
    project_id: str
    name: str
    description: str = ""
    secret_hash: str
    roles: tuple[str, ...]
    #: It may make and remove others of its kind.
    unrestricted: bool = False
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token's row; of the token itself only a hash is kept."""

    user_id: str
    project_id: str | None
    issued_at: datetime
    expires_at: datetime
    application_credential_id: str | None = None
    methods: tuple[str, ...] = ("password",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A validated token: a user acting in one project (None: unscoped) with the roles held there."""

    user_id: str
    user_name: str
    project_id: str | None
    roles: frozenset[str]
    expires_at: datetime
    #: Acting by one of these, and not an unrestricted one: it cannot make more credentials.
    restricted: bool = False
    #: The one resource that it stands for, and that it may see and signal.
    resource_id: str | None = None
    #: Of one that stands for a resource and has its login at a Keystone: the project there.
    login_project_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2Credential:
    """A key to sign requests with, of a user in a project. The secret is kept sealed."""

    access: str
    sealed_secret: str
    user_id: str
    project_id: str
