"""Migrate a database to the schema of this version; refuse a database that a newer version has migrated."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory

from stoker.model.errors import Conflict
from stoker.store.sqlite import open_engine

#: An arbitrary key, the same in every Stoker: only one process migrates at a time.
_LOCK = 7_310_544_202


def upgrade(engine: sa.Engine) -> None:
    """Migrate the database. Raises Conflict if a newer version has migrated it."""
    config = _config()
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text(f"SELECT pg_advisory_lock({_LOCK})"))
            connection.commit()
        else:
            # SQLite alters a table by copying and dropping it. With foreign keys enabled, this would delete the rows
            # that refer to it.
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
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
            else:
                connection.exec_driver_sql("PRAGMA foreign_keys = ON")


def write_migration(name: str) -> Path:
    """Write a migration from the latest migration to ``store.schema``, for developers; return its path."""
    config = _config()
    with TemporaryDirectory() as folder:
        engine = open_engine(f"sqlite:///{folder}/empty.db")
        upgrade(engine)
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            number = len(list(ScriptDirectory.from_config(config).walk_revisions())) + 1
            script = command.revision(config, name, autogenerate=True, rev_id=f"{number:04}")
        engine.dispose()
    assert isinstance(script, Script), "one migration was requested"
    return Path(script.path)


def _refuse_newer(connection: sa.Connection, config: Config) -> None:
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = MigrationContext.configure(connection).get_current_heads()
    connection.rollback()
    for revision in current:
        if revision not in revisions:
            raise Conflict(
                f"cannot use this database: it is at revision {revision!r}, which a newer Stoker made;"
                " upgrade Stoker, or restore the database from before"
            )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
