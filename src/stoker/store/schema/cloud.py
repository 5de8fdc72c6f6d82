"""The table of cloud objects."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import ENCRYPTED, REDACTED, Id, Json, Name, Time, metadata

#: Objects of a cloud that belong to resources. A row remains until its object is deleted, even if its stack is.
cloud_objects = sa.Table(
    "cloud_objects",
    metadata,
    #: The id of the resource.
    sa.Column("id", Id, primary_key=True),
    sa.Column("kind", Id, nullable=False),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("root_id", Id, nullable=False, index=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("specification", Json, nullable=False, info=ENCRYPTED),
    sa.Column("action", Id, nullable=False),
    sa.Column("arguments", Json, nullable=False, info=ENCRYPTED),
    sa.Column("status", Id, nullable=False),
    sa.Column("reason", sa.Text, nullable=False, info=REDACTED),
    #: The desired generation counts requests; the observed generation is the last one that was applied.
    sa.Column("desired_generation", sa.BigInteger, nullable=False),
    sa.Column("observed_generation", sa.BigInteger, nullable=False),
    #: NULL until the cloud has the object.
    sa.Column("external_id", Name, index=True),
    sa.Column("observed", Json, nullable=False, info=ENCRYPTED),
    sa.Column("error_type", Name, nullable=False),
    sa.Column("progress", Json, nullable=False, info=ENCRYPTED),
    #: The list of the cloud in which the object is polled; NULL: the object is not polled.
    sa.Column("awaits", Id, index=True),
    sa.Column("awaited_since", Time),
    sa.Index("ix_cloud_objects_project_id_kind_name", "project_id", "kind", "name"),
)

#: Credentials by which Stoker acts for the owner of a tree of stacks at Keystone.
delegations = sa.Table(
    "delegations",
    metadata,
    sa.Column("root_id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("user_id", Id, nullable=False),
    sa.Column("trust_id", sa.Text, nullable=False, info=ENCRYPTED),
    #: The stack is deleted; the trust follows when its last object is.
    sa.Column("is_ended", sa.Boolean, nullable=False),
)
