"""The table of jobs, which is the job queue of both databases."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, Json, Name, Time, metadata, serial

#: While the state is RUNNING, ``owner`` is the process that runs the job, and ``leased_until`` the time until which the
#: process is considered alive. While it is WAITING, both are NULL.
jobs = sa.Table(
    "jobs",
    metadata,
    serial(),
    sa.Column("kind", Id, nullable=False),
    sa.Column("key", Name, nullable=False),
    sa.Column("args", Json, nullable=False),
    sa.Column("due", Time, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("last_error", sa.Text),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("owner", Id),
    sa.Column("leased_until", Time),
)
#: The conditions of the partial indexes. Queries repeat them literally, so that both databases use the indexes.
WAITING, RUNNING = sa.text("state = 'WAITING'"), sa.text("state = 'RUNNING'")
#: For taking jobs: contains the waiting ones in the order in which they are taken.
sa.Index("ix_jobs_due", jobs.c.due, jobs.c.seq, postgresql_where=WAITING, sqlite_where=WAITING)
sa.Index("ix_jobs_key_kind", jobs.c.key, jobs.c.kind)
#: At most one job of a kind and key runs at a time.
sa.Index("uq_jobs_running", jobs.c.kind, jobs.c.key, unique=True, postgresql_where=RUNNING, sqlite_where=RUNNING)
