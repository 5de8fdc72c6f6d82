"""The table of properties that all processes of the site share."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.store.schema.base import Id, metadata

site_properties = sa.Table(
    "site_properties",
    metadata,
    sa.Column("name", Id, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
