"""Who there is, and what they log in with."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, Json, Name, Time, metadata

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

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("hash", Id, primary_key=True),
    sa.Column("user_id", Id, nullable=False, index=True),
    sa.Column("project_id", Id),
    sa.Column("issued_at", Time, nullable=False),
    sa.Column("expires_at", Time, nullable=False, index=True),
    #: Got by one: it may do no more than that, and ends with it.
    sa.Column("application_credential_id", Id),
    #: How it was got, as Keystone names the ways, separated by commas.
    sa.Column("methods", Name),
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

#: Keys to sign requests with; the secrets are sealed with the site's own.
ec2_credentials = sa.Table(
    "ec2_credentials",
    metadata,
    sa.Column("access", Id, primary_key=True),
    sa.Column("sealed_secret", sa.Text, nullable=False),
    sa.Column("user_id", Id, nullable=False, index=True),
    sa.Column("project_id", Id, nullable=False),
)

#: Users that Stoker has made at a Keystone, each for one resource; a row goes once its user has.
stack_users = sa.Table(
    "stack_users",
    metadata,
    sa.Column("resource_id", Id, primary_key=True),
    sa.Column("root_id", Id, nullable=False, index=True),
    sa.Column("name", Name, nullable=False),
    #: NULL until they are made.
    sa.Column("user_id", Id, unique=True),
    sa.Column("user_project_id", Id),
    sa.Column("domain_id", Id),
    #: What it should be there, and what it is.
    sa.Column("wanted", Id, nullable=False),
    sa.Column("state", Id, nullable=False),
)
