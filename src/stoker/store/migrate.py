"""Bring a database to the schema this Stoker knows; refuse one that a newer Stoker has already changed."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from stoker.model.errors import Conflict

#: Any number will do, as long as every Stoker takes the same: only one of them migrates at a time.
_LOCK = 7_310_544_202


def upgrade(engine: sa.Engine) -> None:
    """Raises Conflict when the database is newer than this program."""
    config = _config()
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text(f"SELECT pg_advisory_lock({_LOCK})"))
            connection.commit()
        try:
            _refuse_newer(connection, config)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
        finally:
            connection.rollback()
            if engine.dialect.name == "postgresql":
                connection.execute(sa.text(f"SELECT pg_advisory_unlock({_LOCK})"))
                connection.commit()


def _refuse_newer(connection: sa.Connection, config: Config) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    found = MigrationContext.configure(connection).get_current_heads()
    connection.rollback()
    for revision in found:
        if revision not in known:
            raise Conflict(
                f"cannot use this database: it is at revision {revision!r}, which a newer Stoker made;"
                " upgrade Stoker, or restore the database from before"
            )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
