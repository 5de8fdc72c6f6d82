"""Tables of triggers, schedules, selectors and the audit log."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import ENCRYPTED, REDACTED, Id, Json, Name, Time, child_of, metadata, serial

triggers = sa.Table(
    "triggers",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("action", Name, nullable=False),
    #: The source that the request named: a stack's resource, a deployment or a config.
    sa.Column("source", Json, nullable=False),
    #: The stack that contains the source, if the source is a resource.
    sa.Column("stack_id", Id),
    #: A copy of the source's config at the time of the trigger. Targets that start later run the same content.
    sa.Column("config", Json, nullable=False, info=ENCRYPTED),
    #: Input values that override those of the source.
    sa.Column("input_values", Json, nullable=False, info=ENCRYPTED),
    #: Signal transport, timeout, limits of concurrent and failed targets.
    sa.Column("options", Json, nullable=False),
    sa.Column("requested_by", Name),
    sa.Column("schedule_id", Id),
    sa.Column("status", Id, nullable=False),
    sa.Column("status_reason", sa.Text, nullable=False, info=REDACTED),
    #: The number of targets, in total and by status.
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("queued", sa.Integer, nullable=False),
    sa.Column("running", sa.Integer, nullable=False),
    sa.Column("complete", sa.Integer, nullable=False),
    sa.Column("failed", sa.Integer, nullable=False),
    sa.Column("cancelled", sa.Integer, nullable=False),
    #: The number of ended targets whose runs did, or did not, change their servers.
    sa.Column("changed", sa.Integer, nullable=False),
    sa.Column("unchanged", sa.Integer, nullable=False),
    #: The number of changes of its targets.
    sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("ended_at", Time),
    sa.Index("ix_triggers_project_id_seq", "project_id", "seq"),
    sa.Index("ix_triggers_schedule_id_seq", "schedule_id", "seq"),
)

#: The servers of a trigger, in order. A target has a deployment when it starts.

trigger_targets = sa.Table(
    "trigger_targets",
    metadata,
    sa.Column("trigger_id", Id, child_of("triggers.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("server_id", Id, nullable=False),
    sa.Column("server_name", Name, nullable=False),
    #: The name of the target's deployment, and its input values before the trigger's override them.
    sa.Column("name", Name, nullable=False),
    sa.Column("input_values", Json, nullable=False, info=ENCRYPTED),
    sa.Column("status", Id, nullable=False),
    sa.Column("status_reason", sa.Text, nullable=False, info=REDACTED),
    #: Whether the run changed the server; NULL: not known.
    sa.Column("changed", sa.Boolean),
    sa.Column("deployment_id", Id, index=True),
    #: The trigger's revision of the last change.
    sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
    sa.Index("ix_trigger_targets_trigger_id_status_position", "trigger_id", "status", "position"),
    sa.Index("ix_trigger_targets_trigger_id_revision_position", "trigger_id", "revision", "position"),
)

schedules = sa.Table(
    "schedules",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    #: The body of a request that creates the trigger.
    sa.Column("body", Json, nullable=False, info=ENCRYPTED),
    #: Names of inputs in the body whose values are secret.
    sa.Column("secret", Json, nullable=False),
    #: The config that the body names, if any: it must not be deleted.
    sa.Column("config_id", Id, index=True),
    #: A cron expression in a time zone; NULL for a single time.
    sa.Column("cron", Name),
    sa.Column("at", Time),
    sa.Column("timezone", Id, nullable=False),
    #: Whether each server waits for its own maintenance window.
    sa.Column("require_window", sa.Boolean, nullable=False),
    #: What happens when a scheduled time passes while no process is running: RUN or SKIP.
    sa.Column("misfire_policy", Id, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("requested_by", Name),
    sa.Column("next_at", Time),
    sa.Column("last_at", Time),
    sa.Column("last_trigger_id", Id),
    sa.Column("last_error", sa.Text, info=REDACTED),
    sa.Column("run_count", sa.Integer, nullable=False),
    sa.Column("missed_count", sa.Integer, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.UniqueConstraint("project_id", "name"),
)

#: Groups whose members are the servers that have these labels and match the text.

selectors = sa.Table(
    "selectors",
    metadata,
    sa.Column("resource_id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False, index=True),
    sa.Column("labels", Json, nullable=False),
    sa.Column("text", sa.Text),
    #: The stack whose operation must end before the group may change.
    sa.Column("waits_for", Id, index=True),
)

#: Decisions of policies, changes of policies, and rejected writes.

audit = sa.Table(
    "audit",
    metadata,
    serial(),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("at", Time, nullable=False),
    sa.Column("actor", Name),
    sa.Column("action", Name, nullable=False),
    sa.Column("outcome", Id, nullable=False),
    sa.Column("server_id", Id),
    sa.Column("deployment_id", Id),
    sa.Column("stack_id", Id),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Index("ix_audit_project_id_seq", "project_id", "seq"),
    sa.Index("ix_audit_server_id_seq", "server_id", "seq"),
)
