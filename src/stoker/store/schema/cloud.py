"""Tables of cloud objects and of the credentials for them."""

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

#: Objects of a cloud that other objects changed, so that their representation has to be read again.
cloud_refreshes = sa.Table(
    "cloud_refreshes",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("kind", Id, nullable=False),
    sa.Column("external_id", Name, nullable=False),
    #: The earliest time of the reading.
    sa.Column("due_at", Time, nullable=False),
    sa.Index("ix_cloud_refreshes_project_id_due_at", "project_id", "due_at"),
)

#: How Stoker acts for the owner of a tree of stacks at Keystone: by a trust, or by an application credential.
delegations = sa.Table(
    "delegations",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("root_id", Id, nullable=False, index=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("user_id", Id, nullable=False),
    #: NULL for an application credential, and before Keystone has answered.
    sa.Column("trust_id", sa.Text, info=ENCRYPTED),
    sa.Column("credential_id", Id, index=True),
    #: A job revokes the delegation: the stack is deleted with its objects, or its transaction did not commit.
    sa.Column("is_ended", sa.Boolean, nullable=False),
)

#: Application credentials that Stoker created at Keystone. The stacks of a user in a project share one.
cloud_credentials = sa.Table(
    "cloud_credentials",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("project_id", Id, nullable=False),
    sa.Column("user_id", Id, nullable=False, index=True),
    #: The ids of its roles at Keystone.
    sa.Column("roles", Json, nullable=False),
    sa.Column("secret", sa.Text, nullable=False, info=ENCRYPTED),
    #: A job deletes the credential, so no other stack may use it.
    sa.Column("is_ended", sa.Boolean, nullable=False),
)
