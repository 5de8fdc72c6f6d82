"""Health check of the database on its own connection, so that an exhausted pool does not look like a lost database."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from stoker.model.errors import Unavailable


class Probe:
    """A health check with one connection, which the first check opens."""

    def __init__(self, open_engine: Callable[[], sa.Engine]) -> None:
        self._open_engine = open_engine
        self._engine: sa.Engine | None = None

    def check(self) -> None:
        """Read one row. Raises Unavailable; blocks as long as the database does not respond."""
        if self._engine is None:
            self._engine = self._open_engine()
        try:
            with self._engine.connect() as connection:
                connection.execute(sa.text("SELECT 1 FROM alembic_version"))
        except sa.exc.SQLAlchemyError as error:
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise Unavailable(f"cannot read from the database: {cause}") from error

    def close(self) -> None:
        """Close the connection."""
        if self._engine is not None:
            self._engine.dispose()
