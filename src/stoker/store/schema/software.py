"""Tables of servers, configs, deployments, runs and their output."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import ENCRYPTED, REDACTED, Id, Json, Name, Time, child_of, link_to, metadata, serial

servers = sa.Table(
    "servers",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("kind", Id, nullable=False),
    sa.Column("stack_id", Id, link_to("stacks.id"), index=True),
    sa.Column("resource_id", Id, link_to("resources.id"), index=True),
    sa.Column("resource_name", Name),
    sa.Column("key_generation", sa.Integer, nullable=False),
    sa.Column("agent_access", Id, nullable=False),
    #: The enrollment may be deleted before the server.
    sa.Column("enrollment_id", Id),
    sa.Column("instance", sa.Text),
    sa.Column("machine", sa.Text),
    sa.Column("last_seen", Time),
    #: The agent on the server, as its resource declares it; NULL: the default of the server's kind.
    sa.Column("agent", Id),
    sa.Column("agent_version", sa.Text),
    sa.Column("hooks", Json, nullable=False),
    #: The modes of runs that the agent knows besides applying a config.
    sa.Column("modes", Json, nullable=False),
    sa.Column("hostname", sa.Text),
    #: Labels, which selectors match.
    sa.Column("labels", Json, nullable=False),
    #: Who may deploy to the server, and when (``deployments.policy``); NULL: the default policy of the site.
    sa.Column("policy", Json),
    #: Of an enrolled server: the resources that represent it, each by its id with the id of the root stack of its tree.
    sa.Column("stands_for", Json, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    #: Ten thousand machines may use one enrollment.
    sa.Index("ix_servers_enrollment_id_instance", "enrollment_id", "instance"),
    sa.Index("ix_servers_enrollment_id_machine", "enrollment_id", "machine"),
    sa.Index("ix_servers_project_id_name", "project_id", "name"),
    sa.Index("ix_servers_project_id_created_at_id", "project_id", "created_at", "id"),
    #: For selectors (``statements.HasLabels``).
    sa.Index("ix_servers_labels", sa.text("(labels::jsonb)"), postgresql_using="gin").ddl_if(dialect="postgresql"),
)

enrollments = sa.Table(
    "enrollments",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False, index=True),
    sa.Column("token_hash", Id, nullable=False, unique=True),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("created_by", Name),
    sa.Column("expires_at", Time, nullable=False),
    #: NULL: every machine that redeems the token becomes a new server.
    sa.Column("server_id", Id, child_of("servers.id"), index=True),
    sa.Column("limit", sa.Integer, nullable=False),
    sa.Column("uses", sa.Integer, nullable=False),
    sa.Column("name_from", Id, nullable=False),
    sa.Column("labels", Json, nullable=False),
    sa.Column("needs_approval", sa.Boolean, nullable=False),
    sa.Column("reruns", sa.Boolean, nullable=False),
)

relays = sa.Table(
    "relays",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("ca", sa.Text),
    sa.Column("key_hash", Id, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("created_by", Name),
    sa.Column("last_seen", Time),
    sa.Column("version", Id),
    sa.Index("uq_relays_project_id_name", "project_id", "name", unique=True),
)

#: What the agent of a server reports about its machine.

server_facts = sa.Table(
    "server_facts",
    metadata,
    sa.Column("server_id", Id, child_of("servers.id"), primary_key=True),
    sa.Column("os", sa.Text),
    sa.Column("address", sa.Text),
    sa.Column("facts", Json, nullable=False),
    sa.Column("reported_at", Time, nullable=False),
)

#: The last upgrade of each server's agent.
agent_upgrades = sa.Table(
    "agent_upgrades",
    metadata,
    sa.Column("server_id", Id, child_of("servers.id"), primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("rollout_id", Id, nullable=False, index=True),
    sa.Column("status", Id, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("sha256", Id, nullable=False),
    sa.Column("from_version", sa.Text),
    sa.Column("requested_by", sa.Text, nullable=False),
    sa.Column("requested_at", Time, nullable=False),
    sa.Column("is_canary", sa.Boolean, nullable=False),
    sa.Column("pause_on_failure", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Index("ix_agent_upgrades_project_id_server_id", "project_id", "server_id"),
)

#: One row for each server id that a deployment ever named, whether Stoker knows the server or not.

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("server_id", Id, primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
    #: The resource whose transport publishes the document; NULL: agents only poll it.
    sa.Column("channel", Id),
    #: Digest of the last published document.
    sa.Column("published", Id),
    #: The signed revision of the published document: microseconds since 1970, never decreasing.
    sa.Column("signed_revision", sa.BigInteger, nullable=False, server_default=sa.text("0")),
)

configs = sa.Table(
    "configs",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name),
    sa.Column("group", Name),
    #: The config is a deployment's copy, with the name of the source config.
    sa.Column("is_derived", sa.Boolean, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    #: Stoker created the config for the run of a deployment, and deletes it with the last deployment that runs it.
    sa.Column("is_owned", sa.Boolean, nullable=False),
    #: The config as every API serves it, rendered once; documents are joined from these.
    sa.Column("body", Json, nullable=False, info=ENCRYPTED),
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
    sa.Column("status_reason", sa.Text, info=REDACTED),
    sa.Column("input_values", Json, nullable=False, info=ENCRYPTED),
    sa.Column("output_values", Json, nullable=False, info=ENCRYPTED),
    sa.Column("signal_transport", Id),
    sa.Column("resource_id", Id, link_to("resources.id")),
    sa.Column("stack_id", Id),
    #: The trigger that started the deployment, if any.
    sa.Column("trigger_id", Id),
    #: Why no document contains the deployment: it waits for a window (WINDOW) or must not run any more (CANCELLED,
    #: INTERRUPTED).
    sa.Column("held_by", Id),
    #: The agent has the run and has to stop it. False again when the agent has confirmed the stop.
    sa.Column("cancelling", sa.Boolean, nullable=False),
    #: The server belongs to another project, whose policy admits the deployment.
    sa.Column("admitted", sa.Boolean, nullable=False),
    #: What the hook does in the current run: preview or undo; NULL: it applies the config.
    sa.Column("mode", Id),
    #: A client has deleted the deployment, which disappears when its run has undone it.
    sa.Column("removing", sa.Boolean, nullable=False),
    #: Whether the last run changed the server, and how many items; NULL: not known.
    sa.Column("changed", sa.Boolean),
    sa.Column("changed_items", sa.Integer, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("updated_at", Time),
    sa.Index("ix_deployments_server_id_seq", "server_id", "seq"),
    sa.Index("ix_deployments_project_id_seq", "project_id", "seq"),
    sa.Index("ix_deployments_config_id", "config_id"),
)

#: Deployments that a server's own agent may have to run, report or stop. All others have ended, and their number grows
#: from year to year. A query uses the index only if it contains the same condition.
_TO_RUN = "(cancelling OR status = 'IN_PROGRESS' OR signal_transport = 'NO_SIGNAL')"
sa.Index(
    "ix_deployments_to_run",
    deployments.c.server_id,
    sqlite_where=sa.text(_TO_RUN),
    postgresql_where=sa.text(_TO_RUN),
)

#: For the deletion of a resource, which searches its deployments. Deployments of REST clients have no resource.
sa.Index(
    "ix_deployments_resource_id",
    deployments.c.resource_id,
    sqlite_where=deployments.c.resource_id.is_not(None),
    postgresql_where=deployments.c.resource_id.is_not(None),
)

#: Every run of every deployment, from the request to the result. REST clients may give one config to several
#: deployments.

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("deployment_id", Id, child_of("deployments.id"), primary_key=True),
    sa.Column("config_id", Id, primary_key=True),
    #: Counts the runs of the deployment, from 1.
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("action", Name),
    sa.Column("mode", Id),
    #: ``model.deployment.RunState``.
    sa.Column("state", Id, nullable=False),
    #: The agent's last report, and its time.
    sa.Column("percent", sa.Integer),
    sa.Column("message", sa.Text, info=REDACTED),
    sa.Column("last_heartbeat_at", Time),
    sa.Column("queued_at", Time, nullable=False),
    sa.Column("sent_at", Time),
    #: The transport that delivered the run.
    sa.Column("channel", Id),
    sa.Column("started_at", Time),
    sa.Column("ended_at", Time),
    sa.Column("status", Name),
    sa.Column("status_code", sa.Text),
    sa.Column("status_reason", sa.Text, info=REDACTED),
    #: Name of the user who requested the run; NULL: the action of a stack started it.
    sa.Column("requested_by", Name),
    #: Without the values of secret inputs.
    sa.Column("input_values", Json, nullable=False, info=ENCRYPTED),
    #: Without the output in the log.
    sa.Column("output_values", Json, nullable=False, info=ENCRYPTED),
    #: Whether the run changed the server, and what; NULL: its hook does not report it.
    sa.Column("changed", sa.Boolean),
    sa.Column("changes", Json, nullable=False, info=ENCRYPTED),
    #: Bytes that the run has written, stored or not.
    sa.Column("stdout_bytes", sa.BigInteger, nullable=False),
    sa.Column("stderr_bytes", sa.BigInteger, nullable=False),
    #: The last bytes, encrypted, if they may be the beginning of a secret: no chunk contains them yet.
    sa.Column("stdout_held", sa.LargeBinary, info=ENCRYPTED),
    sa.Column("stderr_held", sa.LargeBinary, info=ENCRYPTED),
)

#: Deployments whose server is compared with what they left: the settings and the last result.
checks = sa.Table(
    "checks",
    metadata,
    sa.Column("deployment_id", Id, child_of("deployments.id"), primary_key=True),
    sa.Column("server_id", Id, nullable=False, index=True),
    #: The derived config that the result is about.
    sa.Column("config_id", Id, nullable=False),
    #: Seconds; NULL: checks run on request only.
    sa.Column("check_interval", sa.Integer),
    #: Whether drift starts another run.
    sa.Column("enforce", sa.Boolean, nullable=False),
    #: ``model.check.CheckState``.
    sa.Column("state", Id, nullable=False),
    sa.Column("since", Time, nullable=False),
    sa.Column("checked_at", Time),
    #: When a user requested the check that the agent has not answered yet.
    sa.Column("requested_at", Time),
    sa.Column("drifted_at", Time),
    sa.Column("reason", sa.Text, nullable=False, info=REDACTED),
    sa.Column("changes", Json, nullable=False, info=ENCRYPTED),
    sa.Column("remediations", sa.Integer, nullable=False),
    sa.Column("remediate_at", Time),
)

logs = sa.Table(
    "logs",
    metadata,
    serial(),
    sa.Column("deployment_id", Id, child_of("deployments.id"), nullable=False),
    sa.Column("config_id", Id, nullable=False),
    sa.Column("stream", Id, nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("at", Time, nullable=False),
    sa.Index("ix_logs_deployment_id_seq", "deployment_id", "seq"),
    sa.Index("ix_logs_at", "at"),
)

#: Stored hooks and catalogue entries, which never change.
artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("id", Id, primary_key=True),
    #: Empty: every project of the site can read the artifact.
    sa.Column("project_id", Id, nullable=False),
    #: ``model.artifact.ArtifactKind``.
    sa.Column("kind", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("sha256", Id, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("created_by", Name),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index("uq_artifacts_kind_project_id_name_version", "kind", "project_id", "name", "version", unique=True),
    sa.Index("ix_artifacts_sha256", "sha256"),
)
