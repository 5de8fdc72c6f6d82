"""The object store; and what was made in one, or in a messaging service, elsewhere."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Bytewise, Id, Json, Time, metadata, serial

#: An account is a project's.
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("headers", Json, nullable=False),
    sa.Column("created_at", Time, nullable=False),
)

containers = sa.Table(
    "containers",
    metadata,
    sa.Column("account", Id, primary_key=True),
    sa.Column("name", Bytewise, primary_key=True),
    #: The resource or server it was made for.
    sa.Column("owner", Id),
    sa.Column("headers", Json, nullable=False),
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
    #: NULL for what the name means now.
    sa.Column("replaced_at", Time),
    sa.Column("marker", sa.Boolean, nullable=False),
    #: Last, so that SQLite finds everything else without reading through it.
    sa.Column("data", sa.LargeBinary, nullable=False),
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

#: What Stoker has made, or is to make, in a Swift or a Zaqar: an object or a queue each.
lodgings = sa.Table(
    "lodgings",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("kind", Id, nullable=False),
    sa.Column("name", sa.String(512), nullable=False),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("resource_id", Id, nullable=False, index=True),
    #: What is to be there, in JSON; None: nothing yet, but a place for results.
    sa.Column("body", Json),
    #: Counts what was asked for, and how far that was brought there.
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("reached", sa.BigInteger, nullable=False),
    sa.Column("gone", sa.Boolean, nullable=False),
    #: When to look for a result next, and microseconds between looks; None: nobody waits for one.
    sa.Column("look_at", Time),
    sa.Column("pause", sa.BigInteger, nullable=False),
    #: Until when signals are waited for that are no run's.
    sa.Column("awaited_until", Time),
    #: The method that an agent's signed URL opens it to; None: no agent has one.
    sa.Column("opens_to", sa.String(16)),
    #: The result that was taken last, as its kind tells results apart; where versions count, all of them.
    sa.Column("heard", sa.Text),
    #: What it was given there: a signed URL, a subscription.
    sa.Column("details", Json, nullable=False),
    sa.UniqueConstraint("kind", "name"),
    sa.Index("ix_lodgings_kind_look_at", "kind", "look_at"),
)
