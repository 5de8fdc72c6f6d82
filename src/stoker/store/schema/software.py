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
    #: Which agent runs there, as its resource says; None: that of its kind.
    sa.Column("agent", Id),
    sa.Column("agent_version", sa.Text),
    sa.Column("hooks", Json, nullable=False),
    sa.Column("hostname", sa.Text),
    #: What selectors find it by.
    sa.Column("labels", Json, nullable=False),
    #: Who may deploy to it, and when (``deployments.policy``); None: the site's default.
    sa.Column("policy", Json),
    #: Of an enrolled one: the resources that stand for it, by id, each with the id of the stack at the top of its tree.
    sa.Column("stands_for", Json, nullable=False),
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
    #: The trigger that began it, if one did.
    sa.Column("trigger_id", Id),
    #: Why no document has it: it waits for something (WINDOW), or is not to run any more (CANCELLED).
    sa.Column("withheld", Id),
    #: The agent has its run and is to be told to stop it; until it says that it has.
    sa.Column("cancelling", sa.Boolean, nullable=False),
    #: Another project's server takes it: its policy says so.
    sa.Column("admitted", sa.Boolean, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("updated_at", Time),
    sa.Index("ix_deployments_server_id_seq", "server_id", "seq"),
    sa.Index("ix_deployments_project_id_seq", "project_id", "seq"),
    sa.Index("ix_deployments_config_id", "config_id"),
)

#: Every run of every deployment: an action, from when it was asked for to what came of it. REST clients may give
#: several deployments one config.

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("deployment_id", Id, primary_key=True),
    sa.Column("config_id", Id, primary_key=True),
    #: Counts the runs of its deployment, from 1.
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("action", Name),
    #: ``model.deployment.RunState``.
    sa.Column("state", Id, nullable=False),
    #: What the agent said last, and when.
    sa.Column("percent", sa.Integer),
    sa.Column("message", sa.Text),
    sa.Column("heard_at", Time),
    sa.Column("queued_at", Time, nullable=False),
    sa.Column("delivered_at", Time),
    #: The transport that it was delivered by.
    sa.Column("channel", Id),
    sa.Column("started_at", Time),
    sa.Column("ended_at", Time),
    sa.Column("status", Name),
    sa.Column("status_code", sa.Text),
    sa.Column("status_reason", sa.Text),
    #: Name of the user who asked for it; None: a stack of theirs did.
    sa.Column("asked_by", Name),
    #: Without the values of secret ones.
    sa.Column("input_values", Json, nullable=False),
    #: Without what the log has.
    sa.Column("output_values", Json, nullable=False),
    #: Bytes that were written, kept or not.
    sa.Column("stdout_bytes", sa.BigInteger, nullable=False),
    sa.Column("stderr_bytes", sa.BigInteger, nullable=False),
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
    sa.Index("ix_logs_at", "at"),
)
