"""Settings and errors that the connection pools of both databases share."""

from __future__ import annotations

from stoker.model.errors import Unavailable

#: Seconds that a transaction waits for a free connection.
TIMEOUT = 10.0


def pool_exhausted() -> Unavailable:
    """Return the error of a transaction that got no connection in time."""
    return Unavailable(
        f"all database connections of this process were busy for {TIMEOUT:g} seconds: try again later"
        " (the setting database_connections allows more, on PostgreSQL)"
    )
