"""Tables of stacks, their resources, plans and events."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import ENCRYPTED, REDACTED, Id, Json, Name, Time, child_of, metadata, serial

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
    sa.Column("reason", sa.Text, nullable=False, info=REDACTED),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("version", Id, nullable=False),
    sa.Column("parameters", Json, nullable=False, info=ENCRYPTED),
    sa.Column("outputs", Json, nullable=False, info=ENCRYPTED),
    sa.Column("tags", Json, nullable=False),
    #: Queues that receive the stack's events.
    sa.Column("event_sinks", Json, nullable=False),
    sa.Column("timeout_mins", sa.Integer),
    sa.Column("disable_rollback", sa.Boolean, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("updated_at", Time),
    sa.Column("deleted_at", Time),
    sa.Column("traversal", Id, nullable=False),
    sa.Column("phase", Id, nullable=False),
    sa.Column("remaining", sa.Integer, nullable=False),
    sa.Column("failure", sa.Text, info=REDACTED),
    sa.Column("root_id", Id, nullable=False, index=True),
    sa.Column("parent_id", Id, index=True),
    sa.Column("parent_resource_id", Id),
    sa.Column("parent_resource", Name),
    sa.Column("depth", sa.Integer, nullable=False),
    #: ``model.stack.Source`` of the current or last operation, and of the last one that completed.
    sa.Column("source", Json, nullable=False, info=ENCRYPTED),
    sa.Column("previous", Json, info=ENCRYPTED),
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

#: For the deletion of the records of deleted stacks.
sa.Index(
    "ix_stacks_deleted_at",
    stacks.c.deleted_at,
    sqlite_where=stacks.c.deleted_at.is_not(None),
    postgresql_where=stacks.c.deleted_at.is_not(None),
)

resources = sa.Table(
    "resources",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("stack_id", Id, child_of("stacks.id"), nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("type", Name, nullable=False),
    sa.Column("action", Id, nullable=False),
    sa.Column("status", Id, nullable=False),
    sa.Column("reason", sa.Text, nullable=False, info=REDACTED),
    sa.Column("physical_id", sa.Text),
    sa.Column("definition", Json, nullable=False, info=ENCRYPTED),
    sa.Column("properties", Json, nullable=False, info=ENCRYPTED),
    sa.Column("metadata", Json, nullable=False, info=ENCRYPTED),
    sa.Column("data", Json, nullable=False, info=ENCRYPTED),
    sa.Column("requires", Json, nullable=False),
    sa.Column("current", sa.Boolean, nullable=False),
    #: The breakpoint that the resource waits at.
    sa.Column("hook", Id),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("updated_at", Time),
    sa.Index("ix_resources_stack_id_name", "stack_id", "name"),
)

#: The state of a stack at one time, to be restored.
snapshots = sa.Table(
    "snapshots",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("stack_id", Id, child_of("stacks.id"), nullable=False),
    sa.Column("name", Name),
    sa.Column("status", Id, nullable=False),
    sa.Column("reason", sa.Text, nullable=False, info=REDACTED),
    sa.Column("data", Json, nullable=False, info=ENCRYPTED),
    sa.Column("created_at", Time, nullable=False),
    sa.Index("ix_snapshots_stack_id_seq", "stack_id", "seq"),
)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("stack_id", Id, child_of("stacks.id"), primary_key=True),
    sa.Column("key", Name, primary_key=True),
    sa.Column("waiting", sa.Integer, nullable=False),
    sa.Column("state", Id, nullable=False),
    sa.Column("definition", Json, info=ENCRYPTED),
)

#: The step ``key`` waits for the step ``need``.
edges = sa.Table(
    "edges",
    metadata,
    sa.Column("stack_id", Id, child_of("stacks.id"), primary_key=True),
    sa.Column("need", Name, primary_key=True),
    sa.Column("key", Name, primary_key=True),
)

events = sa.Table(
    "events",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("stack_id", Id, child_of("stacks.id"), nullable=False),
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
