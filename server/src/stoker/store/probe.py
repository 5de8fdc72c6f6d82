"""
Health check of the database on its own connection, so that an exhausted pool does not look like a lost database.

The query also corrects the clock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from stoker.model.errors import Unavailable
from stoker.store.clock import DATABASE_TIME, Clock
from stoker.store.connection import Pool
from stoker.store.faults import DatabaseError, describe
from stoker.store.sql import sql

_SELECT = sql("SELECT 1 FROM schema_version", postgresql=f"SELECT {DATABASE_TIME} FROM schema_version")


class Probe:
    """A health check with one connection, which the first check opens."""

    def __init__(self, open_pool: Callable[[], Pool[Any]], clock: Clock) -> None:
        """``open_pool`` returns a pool of one connection."""
        self._clock = clock
        self._open_pool = open_pool
        self._pool: Pool[Any] | None = None

    def check(self) -> None:
        """Read one row. Raises Unavailable; blocks as long as the database does not respond."""
        if self._pool is None:
            self._pool = self._open_pool()
        try:
            with self._pool.connection() as connection:
                dialect, asked_at = connection.dialect, self._clock.uptime()
                row = connection.execute([(_SELECT, ({},))]).fetchone()
        except (DatabaseError, sqlite3.Error) as error:
            raise Unavailable(f"cannot read from the database: {describe(error)}") from error
        if dialect == "sqlite":
            self._clock.approach_machine()
        elif row is not None:
            self._clock.measure(asked_at, row[0])

    def close(self) -> None:
        """Close the connection."""
        if self._pool is not None:
            self._pool.close()
