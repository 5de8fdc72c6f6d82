"""The messaging service: queues, messages, claims and subscriptions."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, Json, Name, Time, metadata, serial

queues = sa.Table(
    "queues",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Id, nullable=False),
    sa.Column("metadata", Json, nullable=False),
    #: The resource or server that it was made for; None: somebody's own.
    sa.Column("owner", Name),
    sa.Column("created_at", Time, nullable=False),
    sa.UniqueConstraint("project_id", "name"),
)

#: They name their queue by id: a queue of the same name made later is another one.
messages = sa.Table(
    "messages",
    metadata,
    serial(),
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
    serial(),
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
