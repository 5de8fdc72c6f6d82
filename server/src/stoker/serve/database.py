"""Opens the configured database and migrates its schema."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg

from stoker.addresses import hide_password
from stoker.model.errors import Conflict, Invalid, Unavailable
from stoker.serve import state_dir
from stoker.serve.site_keys import secret_file
from stoker.settings import Settings
from stoker.store import migrate, postgresql
from stoker.store.connection import DatabaseError, describe_error
from stoker.store.encryption import KeySource, without_keys
from stoker.store.open import Store


def open_store(settings: Settings, keys: KeySource = without_keys) -> Store:
    """
    Open the configured database and apply pending migrations. SQLite's files must belong to the user of this process.

    ``keys`` returns the keys that encrypt secrets in the database. Raises Invalid for an unusable URL, or if the
    database permits fewer connections than the settings require, or is behind a connection pooler and the settings name
    no direct URL. Raises Unavailable if the database cannot be opened, Conflict if a newer version of Stoker has
    migrated the database, or if the file of a site's database is missing.
    """
    if not has_database(settings) and secret_file(settings).exists():
        raise Conflict(
            f"{name_database(settings)} is missing, but {settings.state_dir} has the secret of a site: restore the"
            " database from the backup, or correct the setting database; for a new site, choose an empty --state-dir"
        )
    try:
        store = Store(
            settings.database_url,
            settings.database_connections,
            keys=keys,
            direct_url=settings.database_direct_url,
        )
        with store.session() as session:
            is_direct = store.dialect == "postgresql" and not postgresql.check_pooler(
                settings.database_url, settings.database_direct_url
            )
            if is_direct:
                postgresql.check_capacity(session, settings.workers * settings.database_connections)
            migrate.upgrade(session, store.dialect)
        state_dir.restrict(_sqlite_files(settings))
    except psycopg.ProgrammingError as error:
        raise Invalid(f"cannot use the database URL {name_database(settings)!r}: {describe_error(error)}") from None
    except (DatabaseError, psycopg.Error, sqlite3.Error) as error:
        raise Unavailable(f"cannot open the database {name_database(settings)}: {describe_error(error)}") from None
    return store


def name_database(settings: Settings) -> str:
    """Return the database as messages name it: the path of its file, or its URL without the password."""
    return _sqlite_file(settings) or hide_password(settings.database_url)


def has_database(settings: Settings) -> bool:
    """Return False if the database's file is missing. Raises Invalid if the file belongs to another user."""
    state_dir.restrict(_sqlite_files(settings))
    file = _sqlite_file(settings)
    return file is None or Path(file).exists()


def sqlite_folders(settings: Settings) -> list[Path]:
    """Return the directory of a SQLite database; empty for another database."""
    return [file.parent for file in _sqlite_files(settings)[:1]]


def _sqlite_file(settings: Settings) -> str | None:
    """Return the path of a SQLite database's file; None for another database."""
    return settings.database_url.removeprefix("sqlite:///") if settings.database_url.startswith("sqlite:///") else None


def _sqlite_files(settings: Settings) -> list[Path]:
    """The database file and SQLite's companion files, which SQLite creates with the mode of the database file."""
    file = _sqlite_file(settings)
    return [Path(f"{file}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")] if file else []
