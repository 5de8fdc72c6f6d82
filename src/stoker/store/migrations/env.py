"""Alembic's entry: runs the migrations on the connection that ``store.migrate`` hands over."""

from __future__ import annotations

from alembic import context

from stoker.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
