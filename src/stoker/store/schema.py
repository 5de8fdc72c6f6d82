"""
The tables, and nothing else. Alembic's migrations must lead to exactly this (a test compares).

Times are integers, microseconds since the epoch, UTC: cheap to compare, the same on every database.
JSON is kept as text written by ``rows``, so that both databases hold the same bytes.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: SQLite counts only a plain INTEGER primary key.
Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Id = sa.String(64)
Name = sa.String(255)
Time = sa.BigInteger()
Json = sa.Text()
#: Sorted by its bytes, whatever the database's language is.
Bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _serial() -> sa.Column[int]:
    return sa.Column("seq", Serial, primary_key=True, autoincrement=True)


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

servers = sa.Table(
    "servers",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("kind", Id, nullable=False),
    sa.Column("stack_id", Id),
    sa.Column("resource_id", Id),
    sa.Column("resource_name", Name),
    sa.Column("key_generation", sa.Integer, nullable=False),
    sa.Column("last_seen", Time),
    sa.Column("agent_version", sa.Text),
    sa.Column("hooks", Json, nullable=False),
    sa.Column("hostname", sa.Text),
    sa.Column("created_at", Time, nullable=False),
    sa.Index("ix_servers_project_id_name", "project_id", "name"),
)

enrolments = sa.Table(
    "enrolments",
    metadata,
    sa.Column("token_hash", Id, primary_key=True),
    sa.Column("server_id", Id, nullable=False, index=True),
    sa.Column("expires_at", Time, nullable=False),
    sa.Column("instance", sa.Text),
)

#: One row per server id that any deployment ever named, whether Stoker knows that server or not.
documents = sa.Table(
    "documents",
    metadata,
    sa.Column("server_id", Id, primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
    #: The resource whose transport carries the document somewhere; None: it is only polled.
    sa.Column("channel", Id),
    #: Digest of what was carried there last.
    sa.Column("published", Id),
)

configs = sa.Table(
    "configs",
    metadata,
    _serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name),
    sa.Column("group", Name),
    sa.Column("created_at", Time, nullable=False),
    #: The config as every face serves it, rendered once: documents are joins of these.
    sa.Column("body", Json, nullable=False),
    sa.Index("ix_configs_project_id_seq", "project_id", "seq"),
)

deployments = sa.Table(
    "deployments",
    metadata,
    _serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("server_id", Id, nullable=False),
    sa.Column("config_id", Id, nullable=False, unique=False),
    sa.Column("action", Name),
    sa.Column("status", Name),
    sa.Column("status_reason", sa.Text),
    sa.Column("input_values", Json, nullable=False),
    sa.Column("output_values", Json, nullable=False),
    sa.Column("signal_transport", Id),
    sa.Column("resource_id", Id),
    sa.Column("stack_id", Id),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("updated_at", Time),
    sa.Index("ix_deployments_server_id_seq", "server_id", "seq"),
    sa.Index("ix_deployments_project_id_seq", "project_id", "seq"),
    sa.Index("ix_deployments_config_id", "config_id"),
)

#: What an agent said of a run before it ended. REST clients may give several deployments one config.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("deployment_id", Id, primary_key=True),
    sa.Column("config_id", Id, primary_key=True),
    sa.Column("state", Id, nullable=False),
    sa.Column("percent", sa.Integer),
    sa.Column("message", sa.Text),
    sa.Column("stdout_bytes", sa.BigInteger, nullable=False),
    sa.Column("stderr_bytes", sa.BigInteger, nullable=False),
    sa.Column("at", Time, nullable=False),
)

logs = sa.Table(
    "logs",
    metadata,
    _serial(),
    sa.Column("deployment_id", Id, nullable=False),
    sa.Column("config_id", Id, nullable=False),
    sa.Column("stream", Id, nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("at", Time, nullable=False),
    sa.Index("ix_logs_deployment_id_seq", "deployment_id", "seq"),
)

stacks = sa.Table(
    "stacks",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("username", Name, nullable=False),
    sa.Column("user_project_id", Id, nullable=False),
    sa.Column("action", Id, nullable=False),
    sa.Column("status", Id, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("version", Id, nullable=False),
    sa.Column("parameters", Json, nullable=False),
    sa.Column("outputs", Json, nullable=False),
    sa.Column("tags", Json, nullable=False),
    #: Queues that are told of its events.
    sa.Column("event_sinks", Json),
    sa.Column("timeout_mins", sa.Integer),
    sa.Column("disable_rollback", sa.Boolean, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("updated_at", Time),
    sa.Column("deleted_at", Time),
    sa.Column("traversal", Id, nullable=False),
    sa.Column("phase", Id, nullable=False),
    sa.Column("remaining", sa.Integer, nullable=False),
    sa.Column("failure", sa.Text),
    sa.Column("root_id", Id, nullable=False, index=True),
    sa.Column("parent_id", Id, index=True),
    sa.Column("parent_resource_id", Id),
    sa.Column("parent_resource", Name),
    sa.Column("depth", sa.Integer, nullable=False),
    #: ``model.stack.Source`` of what is being or was applied, and of the last one that completed.
    sa.Column("source", Json, nullable=False),
    sa.Column("previous", Json),
    sa.Index("ix_stacks_project_id_created_at", "project_id", "created_at"),
)
sa.Index(
    "uq_stacks_live_name",
    stacks.c.project_id,
    stacks.c.name,
    unique=True,
    sqlite_where=stacks.c.deleted_at.is_(None),
    postgresql_where=stacks.c.deleted_at.is_(None),
)

resources = sa.Table(
    "resources",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("stack_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("type", Name, nullable=False),
    sa.Column("action", Id, nullable=False),
    sa.Column("status", Id, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("physical_id", sa.Text),
    sa.Column("definition", Json, nullable=False),
    sa.Column("properties", Json, nullable=False),
    sa.Column("metadata", Json, nullable=False),
    sa.Column("data", Json, nullable=False),
    sa.Column("requires", Json, nullable=False),
    sa.Column("current", sa.Boolean, nullable=False),
    #: The breakpoint it waits at.
    sa.Column("hook", Id),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("updated_at", Time),
    sa.Index("ix_resources_stack_id_name", "stack_id", "name"),
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

#: What a stack was, to be restored.
snapshots = sa.Table(
    "snapshots",
    metadata,
    _serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("stack_id", Id, nullable=False),
    sa.Column("name", Name),
    sa.Column("status", Id, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("data", Json, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Index("ix_snapshots_stack_id_seq", "stack_id", "seq"),
)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("stack_id", Id, primary_key=True),
    sa.Column("key", Name, primary_key=True),
    sa.Column("waiting", sa.Integer, nullable=False),
    sa.Column("state", Id, nullable=False),
    sa.Column("definition", Json),
)

#: ``key`` waits for ``need``.
edges = sa.Table(
    "edges",
    metadata,
    sa.Column("stack_id", Id, primary_key=True),
    sa.Column("need", Name, primary_key=True),
    sa.Column("key", Name, primary_key=True),
)

events = sa.Table(
    "events",
    metadata,
    _serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("stack_id", Id, nullable=False),
    sa.Column("resource_name", Name, nullable=False),
    sa.Column("resource_type", Name, nullable=False),
    sa.Column("physical_id", sa.Text),
    sa.Column("action", Id, nullable=False),
    sa.Column("status", Id, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("properties", Json, nullable=False),
    sa.Column("at", Time, nullable=False),
    sa.Index("ix_events_stack_id_seq", "stack_id", "seq"),
)

#: The SQLite runner's table (PostgreSQL has Procrastinate's own).
jobs = sa.Table(
    "jobs",
    metadata,
    _serial(),
    sa.Column("kind", Id, nullable=False),
    sa.Column("key", Name, nullable=False),
    sa.Column("args", Json, nullable=False),
    sa.Column("due", Time, nullable=False, index=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("last_error", sa.Text),
    sa.Index("ix_jobs_kind_key", "kind", "key"),
)

#: The messaging service's. Messages name their queue by id: a queue of the same name made later is another one.
queues = sa.Table(
    "queues",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Id, nullable=False),
    sa.Column("metadata", Json, nullable=False),
    #: The resource or server that it was made for; None: somebody's own.
    sa.Column("owner", Name, index=True),
    sa.Column("created_at", Time, nullable=False),
    sa.UniqueConstraint("project_id", "name"),
)

messages = sa.Table(
    "messages",
    metadata,
    _serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("queue_id", Id, nullable=False),
    #: Who posted it, by the Client-ID they gave; None: Stoker itself.
    sa.Column("client_id", Id),
    sa.Column("body", Json, nullable=False),
    sa.Column("checksum", Id, nullable=False),
    #: Seconds, as they are shown; what decides is when it expires.
    sa.Column("ttl", sa.Integer, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("expires_at", Time, nullable=False, index=True),
    sa.Column("delayed_until", Time, nullable=False),
    #: Holds until the time beside it, whatever stands here afterwards.
    sa.Column("claim_id", Id, index=True),
    sa.Column("claimed_until", Time, nullable=False),
    sa.Column("claim_count", sa.Integer, nullable=False),
    sa.Index("ix_messages_queue_id_seq", "queue_id", "seq"),
    # A reader's place must not be given again when the last message is gone.
    sqlite_autoincrement=True,
)

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("queue_id", Id, nullable=False, index=True),
    sa.Column("ttl", sa.Integer, nullable=False),
    sa.Column("renewed_at", Time, nullable=False),
    sa.Column("expires_at", Time, nullable=False, index=True),
)

subscriptions = sa.Table(
    "subscriptions",
    metadata,
    _serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("queue_id", Id, nullable=False),
    sa.Column("subscriber", sa.String(1024), nullable=False),
    sa.Column("ttl", sa.BigInteger, nullable=False),
    sa.Column("options", Json, nullable=False),
    sa.Column("confirmed", sa.Boolean, nullable=False),
    sa.Column("renewed_at", Time, nullable=False),
    sa.Column("expires_at", Time, nullable=False, index=True),
    sa.UniqueConstraint("queue_id", "subscriber"),
    sa.Index("ix_subscriptions_queue_id_seq", "queue_id", "seq"),
    sqlite_autoincrement=True,
)

#: The object store's: an account is a project's.
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("headers", Json, nullable=False),
    sa.Column("created_at", Time, nullable=False),
)

containers = sa.Table(
    "containers",
    metadata,
    sa.Column("account", Id, primary_key=True),
    sa.Column("name", Bytewise, primary_key=True),
    #: The resource or server it was made for.
    sa.Column("owner", Id, index=True),
    sa.Column("headers", Json, nullable=False),
    sa.Column("objects", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("kept", sa.BigInteger, nullable=False),
    sa.Column("created_at", Time, nullable=False),
)

objects = sa.Table(
    "objects",
    metadata,
    _serial(),
    sa.Column("account", Id, nullable=False),
    sa.Column("container", Bytewise, nullable=False),
    sa.Column("name", Bytewise, nullable=False),
    sa.Column("version", Id),
    sa.Column("etag", Id, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("content_type", sa.Text, nullable=False),
    sa.Column("headers", Json, nullable=False),
    sa.Column("modified_at", Time, nullable=False),
    sa.Column("delete_at", Time),
    #: NULL for what the name means now.
    sa.Column("replaced_at", Time),
    sa.Column("marker", sa.Boolean, nullable=False),
    #: Last, so that SQLite finds everything else without reading through it.
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Index("ix_objects_account_container_name_modified_at", "account", "container", "name", "modified_at"),
)
sa.Index(
    "uq_objects_current",
    objects.c.account,
    objects.c.container,
    objects.c.name,
    unique=True,
    sqlite_where=objects.c.replaced_at.is_(None),
    postgresql_where=objects.c.replaced_at.is_(None),
)

#: What Stoker has made, or is to make, in a Swift or a Zaqar: an object or a queue each.
lodgings = sa.Table(
    "lodgings",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("kind", Id, nullable=False),
    sa.Column("name", sa.String(512), nullable=False),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("resource_id", Id, nullable=False, index=True),
    #: What is to be there, in JSON; None: nothing yet, but a place for results.
    sa.Column("body", Json),
    #: Counts what was asked for, and how far that was brought there.
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("reached", sa.BigInteger, nullable=False),
    sa.Column("gone", sa.Boolean, nullable=False),
    #: When to look for a result next, and microseconds between looks; None: nobody waits for one.
    sa.Column("look_at", Time),
    sa.Column("pause", sa.BigInteger, nullable=False),
    #: The result that was taken last, as its kind tells results apart.
    sa.Column("heard", sa.Text),
    #: What it was given there: a signed URL, a subscription.
    sa.Column("details", Json, nullable=False),
    sa.UniqueConstraint("kind", "name"),
    sa.Index("ix_lodgings_kind_look_at", "kind", "look_at"),
)
