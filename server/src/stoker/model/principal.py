"""Users, projects, tokens and the authenticated caller of a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from msgspec import Struct


class User(Struct, frozen=True, kw_only=True):
    """A user of the embedded identity service."""

    id: str
    name: str
    domain_id: str
    password_hash: str
    default_project_id: str | None
    enabled: bool = True
    description: str | None = None
    email: str | None = None


class Project(Struct, frozen=True, kw_only=True):
    """A project of the embedded identity service."""

    id: str
    name: str
    domain_id: str
    enabled: bool = True
    description: str = ""


class ApplicationCredential(Struct, frozen=True, kw_only=True):
    """A secret with which a program acts as its user in one project."""

    id: str
    user_id: str
    project_id: str
    name: str
    description: str = ""
    secret_hash: str
    roles: tuple[str, ...]
    #: The credential may create and delete other application credentials.
    unrestricted: bool = False
    expires_at: datetime | None = None


class Token(Struct, frozen=True, kw_only=True):
    """The row of a token. The database contains only a hash of the token itself."""

    user_id: str
    project_id: str | None
    issued_at: datetime
    expires_at: datetime
    application_credential_id: str | None = None
    #: The token is valid for the whole site, not for a project.
    system: bool = False
    #: Hash of the token that this one was created from.
    parent_hash: str | None = None
    methods: tuple[str, ...] = ("password",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """
    A validated token: a user with the user's roles in one project. ``project_id`` is None without a project and for the
    whole site.
    """

    user_id: str
    user_name: str
    project_id: str | None
    roles: frozenset[str]
    expires_at: datetime
    #: The user may administer the users and projects of the whole site.
    site_admin: bool = False
    #: The application credential in use, which may have fewer roles than its user.
    application_credential_id: str | None = None
    #: The credential in use is not unrestricted, so it cannot create more credentials.
    restricted: bool = False
    #: The one resource that a stack user represents, and may see and signal.
    resource_id: str | None = None
    #: The number of the run whose result a stack user reports; None: any.
    run: str | None = None
    #: Of a stack user with a login at a Keystone: the project there.
    login_project_id: str | None = None
