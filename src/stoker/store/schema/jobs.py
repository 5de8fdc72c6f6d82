"""The table of jobs."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, Json, Name, Time, metadata, serial

#: Jobs of the SQLite queue. On PostgreSQL, Procrastinate has its own tables.
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
    #: For kinds of jobs with their own threads.
    sa.Index("ix_jobs_kind_due", "kind", "due"),
)
