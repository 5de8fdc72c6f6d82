"""Servers, what is to run on them, and what came of it."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, Json, Name, Time, metadata, serial

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
    serial(),
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
    serial(),
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
    serial(),
    sa.Column("deployment_id", Id, nullable=False),
    sa.Column("config_id", Id, nullable=False),
    sa.Column("stream", Id, nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("at", Time, nullable=False),
    sa.Index("ix_logs_deployment_id_seq", "deployment_id", "seq"),
)
