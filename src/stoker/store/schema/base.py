"""
What all tables share.

Times are integers, microseconds since the epoch, UTC: cheap to compare, the same on every database.
JSON is kept as text written by ``rows``, so that both databases hold the same bytes.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: SQLite counts only a plain INTEGER primary key.
Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Id = sa.String(64)
Name = sa.String(255)
Time = sa.BigInteger()
Json = sa.Text()
#: Sorted by its bytes, whatever the database's language is.
Bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def serial() -> sa.Column[int]:
    return sa.Column("seq", Serial, primary_key=True, autoincrement=True)
