"""Tables of the messaging service: queues, messages, claims and subscriptions."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import ENCRYPTED, Id, Json, Name, Time, metadata, serial

queues = sa.Table(
    "queues",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("name", Id, nullable=False),
    sa.Column("metadata", Json, nullable=False),
    #: The resource or server that Stoker created the queue for; NULL: a user created it.
    sa.Column("owner", Name),
    sa.Column("created_at", Time, nullable=False),
    sa.UniqueConstraint("project_id", "name"),
)

#: Messages refer to their queue by id: a later queue with the same name is a different one.
messages = sa.Table(
    "messages",
    metadata,
    serial(),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("queue_id", Id, nullable=False),
    #: The Client-ID of the poster; NULL: Stoker posted the message.
    sa.Column("client_id", Id),
    sa.Column("body", Json, nullable=False, info=ENCRYPTED),
    sa.Column("checksum", Id, nullable=False),
    #: Seconds, for display. ``expires_at`` limits the message's life.
    sa.Column("ttl", sa.Integer, nullable=False),
    sa.Column("created_at", Time, nullable=False),
    sa.Column("expires_at", Time, nullable=False, index=True),
    sa.Column("delayed_until", Time, nullable=False),
    #: Valid until ``claimed_until``, whatever the column contains afterwards.
    sa.Column("claim_id", Id, index=True),
    sa.Column("claimed_until", Time, nullable=False),
    sa.Column("claim_count", sa.Integer, nullable=False),
    sa.Index("ix_messages_queue_id_seq", "queue_id", "seq"),
    # After the last message is deleted, its position must not be reused: readers continue after it.
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
