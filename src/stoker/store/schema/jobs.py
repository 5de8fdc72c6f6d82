"""What is to be done later."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, Json, Name, Time, metadata, serial

#: The SQLite runner's table (PostgreSQL has Procrastinate's own).
jobs = sa.Table(
    "jobs",
    metadata,
    serial(),
    sa.Column("kind", Id, nullable=False),
    sa.Column("key", Name, nullable=False),
    sa.Column("args", Json, nullable=False),
    sa.Column("due", Time, nullable=False, index=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("last_error", sa.Text),
    sa.Index("ix_jobs_kind_key", "kind", "key"),
)
