"""Tables of the identity service: projects, users, roles and credentials."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import ENCRYPTED, Id, Json, Name, Time, metadata

projects = sa.Table(
    "projects",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("domain_id", Id, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.UniqueConstraint("domain_id", "name"),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("domain_id", Id, nullable=False),
    sa.Column("password_hash", sa.Text, nullable=False),
    sa.Column("default_project_id", Id),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.UniqueConstraint("domain_id", "name"),
)

assignments = sa.Table(
    "assignments",
    metadata,
    sa.Column("user_id", Id, primary_key=True),
    sa.Column("project_id", Id, primary_key=True),
    sa.Column("role", Id, primary_key=True),
)

#: Roles for the whole site. The administrator's role is the only one.
system_assignments = sa.Table(
    "system_assignments",
    metadata,
    sa.Column("user_id", Id, primary_key=True),
    sa.Column("role", Id, primary_key=True),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("hash", Id, primary_key=True),
    sa.Column("user_id", Id, nullable=False, index=True),
    sa.Column("project_id", Id),
    sa.Column("issued_at", Time, nullable=False),
    sa.Column("expires_at", Time, nullable=False, index=True),
    #: The credential that created the token. It limits the token's roles, and its deletion revokes the token.
    sa.Column("application_credential_id", Id),
    #: Valid for the whole site, not for a project.
    sa.Column("system", sa.Boolean, nullable=False),
    #: Hash of the token that this one was created from. Revoking that token revokes this one.
    sa.Column("parent_hash", Id, index=True),
    #: Keystone's names of the authentication methods.
    sa.Column("methods", Json, nullable=False),
)

application_credentials = sa.Table(
    "application_credentials",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("user_id", Id, nullable=False),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("secret_hash", sa.Text, nullable=False),
    sa.Column("roles", Json, nullable=False),
    sa.Column("unrestricted", sa.Boolean, nullable=False),
    sa.Column("expires_at", Time),
    sa.UniqueConstraint("user_id", "name"),
)

#: Keys with which users sign requests. The secrets are encrypted with the site's key.
ec2_credentials = sa.Table(
    "ec2_credentials",
    metadata,
    sa.Column("access", Id, primary_key=True),
    sa.Column("secret", sa.Text, nullable=False, info=ENCRYPTED),
    sa.Column("user_id", Id, nullable=False, index=True),
    sa.Column("project_id", Id, nullable=False),
)

#: Users that Stoker creates at a Keystone, one for each resource. A row is deleted after its user.
stack_users = sa.Table(
    "stack_users",
    metadata,
    sa.Column("resource_id", Id, primary_key=True),
    sa.Column("root_id", Id, nullable=False, index=True),
    sa.Column("name", Name, nullable=False),
    #: NULL until the user exists.
    sa.Column("user_id", Id, unique=True),
    sa.Column("user_project_id", Id),
    sa.Column("domain_id", Id),
    #: The desired and the actual state of the user.
    sa.Column("wanted", Id, nullable=False),
    sa.Column("state", Id, nullable=False),
)
