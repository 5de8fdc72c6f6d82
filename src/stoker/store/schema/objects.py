"""Tables of the object store, and of remote objects in external services."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import ENCRYPTED, Bytewise, Id, Json, Time, metadata, serial

#: Each project has one account.
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("headers", Json, nullable=False, info=ENCRYPTED),
    sa.Column("created_at", Time, nullable=False),
)

containers = sa.Table(
    "containers",
    metadata,
    sa.Column("account", Id, primary_key=True),
    sa.Column("name", Bytewise, primary_key=True),
    #: The resource or server that Stoker created the container for.
    sa.Column("owner", Id),
    sa.Column("headers", Json, nullable=False, info=ENCRYPTED),
    sa.Column("objects", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("kept", sa.BigInteger, nullable=False),
    sa.Column("created_at", Time, nullable=False),
)

objects = sa.Table(
    "objects",
    metadata,
    serial(),
    sa.Column("account", Id, nullable=False),
    sa.Column("container", Bytewise, nullable=False),
    sa.Column("name", Bytewise, nullable=False),
    sa.Column("version", Id),
    sa.Column("etag", Id, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("content_type", sa.Text, nullable=False),
    sa.Column("headers", Json, nullable=False),
    sa.Column("modified_at", Time, nullable=False),
    sa.Column("delete_at", Time),
    #: NULL for the current version.
    sa.Column("replaced_at", Time),
    sa.Column("marker", sa.Boolean, nullable=False),
    #: Whether ``data`` is encrypted: the data of documents and results, which may contain secrets.
    sa.Column("encrypted", sa.Boolean, nullable=False),
    #: The last column, so that SQLite reads the others without reading this one.
    sa.Column("data", sa.LargeBinary, nullable=False, info=ENCRYPTED),
    sa.Index("ix_objects_account_container_name_modified_at", "account", "container", "name", "modified_at"),
)

sa.Index(
    "uq_objects_current",
    objects.c.account,
    objects.c.container,
    objects.c.name,
    unique=True,
    sqlite_where=objects.c.replaced_at.is_(None),
    postgresql_where=objects.c.replaced_at.is_(None),
)

#: Objects and queues that Stoker has created, or has to create, in an external Swift or Zaqar.
remote_objects = sa.Table(
    "remote_objects",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("kind", Id, nullable=False),
    sa.Column("name", sa.String(512), nullable=False),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("resource_id", Id, nullable=False, index=True),
    #: The desired content as JSON; NULL: no content, but a place for results.
    sa.Column("body", Json, info=ENCRYPTED),
    #: The desired generation counts requests; the observed generation is the last one that was applied.
    sa.Column("desired_generation", sa.BigInteger, nullable=False),
    sa.Column("observed_generation", sa.BigInteger, nullable=False),
    sa.Column("is_removed", sa.Boolean, nullable=False),
    #: When to poll for a result next, and the pause between polls in microseconds; NULL: no result is expected.
    sa.Column("poll_at", Time),
    sa.Column("poll_interval", sa.BigInteger, nullable=False),
    #: Until when signals without a run are expected.
    sa.Column("awaited_until", Time),
    #: The HTTP method of the agent's signed URL; NULL: no agent has one.
    sa.Column("signed_method", sa.String(16)),
    #: The identifier of the last processed result, in the form of the object's kind; for versions, of all results.
    sa.Column("last_result", sa.Text),
    #: Data from the service: a signed URL, a subscription.
    sa.Column("details", Json, nullable=False, info=ENCRYPTED),
    sa.UniqueConstraint("kind", "name"),
    sa.Index("ix_remote_objects_kind_poll_at", "kind", "poll_at"),
)
