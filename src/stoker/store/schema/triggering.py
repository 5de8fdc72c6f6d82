"""What is run on demand and by the clock, and what was decided about it."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, Json, Name, Time, metadata, serial

triggers = sa.Table(
    "triggers",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("action", Name, nullable=False),
    #: What was named: a stack's resource, a deployment or a config.
    sa.Column("source", Json, nullable=False),
    #: The stack whose resource that is, if it is one.
    sa.Column("stack_id", Id),
    #: The source config's content as it was then: what is begun later runs the same.
    sa.Column("config", Json, nullable=False),
    #: Overridden inputs.
    sa.Column("input_values", Json, nullable=False),
    #: Signal transport, timeout, how many at a time, how many may fail.
    sa.Column("options", Json, nullable=False),
    sa.Column("asked_by", Name),
    sa.Column("schedule_id", Id),
    sa.Column("status", Id, nullable=False),
    sa.Column("status_reason", sa.Text, nullable=False),
    #: How many of its targets there are, and how many of them are in each state.
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("queued", sa.Integer, nullable=False),
    sa.Column("running", sa.Integer, nullable=False),
    sa.Column("complete", sa.Integer, nullable=False),
    sa.Column("failed", sa.Integer, nullable=False),
    sa.Column("cancelled", sa.Integer, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("ended_at", Time),
    sa.Index("ix_triggers_project_id_seq", "project_id", "seq"),
    sa.Index("ix_triggers_schedule_id_seq", "schedule_id", "seq"),
)

#: The servers of a trigger, in order. Each gets a deployment when its turn comes.

trigger_targets = sa.Table(
    "trigger_targets",
    metadata,
    sa.Column("trigger_id", Id, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("server_id", Id, nullable=False),
    sa.Column("server_name", Name, nullable=False),
    #: Name of its deployment, and that one's inputs before they are overridden.
    sa.Column("name", Name, nullable=False),
    sa.Column("input_values", Json, nullable=False),
    sa.Column("status", Id, nullable=False),
    sa.Column("status_reason", sa.Text, nullable=False),
    sa.Column("deployment_id", Id, index=True),
    sa.Index("ix_trigger_targets_trigger_id_status_position", "trigger_id", "status", "position"),
)

schedules = sa.Table(
    "schedules",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Name, nullable=False),
    #: What to trigger, as a request to trigger it says.
    sa.Column("body", Json, nullable=False),
    #: A cron expression in a time zone, or else the one time.
    sa.Column("cron", Name),
    sa.Column("at", Time),
    sa.Column("timezone", Id, nullable=False),
    #: Whether each server waits for its own maintenance window.
    sa.Column("in_window", sa.Boolean, nullable=False),
    #: What becomes of a time that passed while nobody served: RUN or SKIP.
    sa.Column("missed", Id, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("asked_by", Name),
    sa.Column("next_at", Time),
    sa.Column("last_at", Time),
    sa.Column("last_trigger_id", Id),
    sa.Column("last_error", sa.Text),
    sa.Column("times", sa.Integer, nullable=False),
    sa.Column("times_missed", sa.Integer, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.UniqueConstraint("project_id", "name"),
)

#: Groups that servers with these labels belong to.

selectors = sa.Table(
    "selectors",
    metadata,
    sa.Column("resource_id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False, index=True),
    sa.Column("labels", Json, nullable=False),
    #: The stack whose operation has to end before the group may be changed.
    sa.Column("waits_for", Id, index=True),
)

#: What policies decided, and why.

audit = sa.Table(
    "audit",
    metadata,
    serial(),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("at", Time, nullable=False),
    sa.Column("who", Name),
    sa.Column("what", Name, nullable=False),
    sa.Column("decision", Id, nullable=False),
    sa.Column("server_id", Id),
    sa.Column("deployment_id", Id),
    sa.Column("stack_id", Id),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Index("ix_audit_project_id_seq", "project_id", "seq"),
    sa.Index("ix_audit_server_id_seq", "server_id", "seq"),
)
