"""
Health check of the database on its own connection, so that an exhausted pool does not look like a lost database.

The query also corrects the clock.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from stoker.model.errors import Unavailable
from stoker.store.clock import DATABASE_TIME, Clock

_SELECT = {
    "postgresql": sa.text(f"SELECT {DATABASE_TIME} FROM alembic_version"),  # noqa: S608 — a constant
    "sqlite": sa.text("SELECT 1 FROM alembic_version"),
}


class Probe:
    """A health check with one connection, which the first check opens."""

    def __init__(self, open_engine: Callable[[], sa.Engine], clock: Clock) -> None:
        self._clock = clock
        self._open_engine = open_engine
        self._engine: sa.Engine | None = None

    def check(self) -> None:
        """Read one row. Raises Unavailable; blocks as long as the database does not respond."""
        if self._engine is None:
            self._engine = self._open_engine()
        try:
            with self._engine.connect() as connection:
                dialect, asked_at = connection.dialect.name, self._clock.uptime()
                answer = connection.execute(_SELECT[dialect]).scalar()
        except sa.exc.SQLAlchemyError as error:
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise Unavailable(f"cannot read from the database: {cause}") from error
        if dialect == "sqlite":
            self._clock.approach_machine()
        elif answer is not None:
            self._clock.measure(asked_at, answer)

    def close(self) -> None:
        """Close the connection."""
        if self._engine is not None:
            self._engine.dispose()
