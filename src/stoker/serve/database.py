"""Opens the configured database and migrates its schema."""

from __future__ import annotations

import re
from pathlib import Path

import sqlalchemy as sa

from stoker.model.errors import Invalid, Unavailable
from stoker.serve import state_dir
from stoker.settings import Settings
from stoker.store import migrate, postgresql
from stoker.store.encryption import KeySource, without_keys
from stoker.store.open import Store


def open_store(settings: Settings, keys: KeySource = without_keys) -> Store:
    """
    Open the configured database and apply pending migrations.

    ``keys`` returns the keys that encrypt secrets in the database. Raises Invalid for an unusable URL, or if the
    database permits fewer connections than the settings require, or is behind a connection pooler and the settings name
    no direct URL. Raises Unavailable if the database cannot be opened, Conflict if a newer version of Stoker has
    migrated the database.
    """
    try:
        store = Store(
            settings.database_url,
            settings.database_connections,
            keys=keys,
            nats_url=settings.notifier,
            direct_url=settings.database_direct_url,
        )
        with store.session_engine() as engine:
            is_direct = store.dialect == "postgresql" and not postgresql.check_pooler(
                settings.database_url, settings.database_direct_url
            )
            if is_direct:
                postgresql.check_capacity(engine, settings.workers * settings.database_connections)
            migrate.upgrade(engine)
        state_dir.restrict(_sqlite_files(store.engine.url))
    except (sa.exc.ArgumentError, ValueError) as error:  # ValueError: the port is not a number
        shown = re.sub(r"(:[^:@/]*):.*@", r"\1:***@", settings.database_url)
        raise Invalid(f"cannot use the database URL {shown!r}: {error}") from None
    except sa.exc.SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise Unavailable(f"cannot open the database: {cause}") from None
    return store


def _sqlite_files(url: sa.URL) -> list[Path]:
    """The database file and SQLite's companion files, which SQLite creates with the mode of the database file."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return []
    return [Path(f"{url.database}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
