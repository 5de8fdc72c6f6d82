"""
Types, naming conventions and helpers that all tables share.

Times are integers: microseconds since the epoch, in UTC. They are cheap to compare and the same on every database. JSON
is stored as text that ``rows`` writes, so both databases contain the same bytes.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    }
)

#: SQLite increments only a plain INTEGER primary key automatically.
Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Id = sa.String(64)
Name = sa.String(255)
Time = sa.BigInteger()
Json = sa.Text()
#: Sorted by bytes, independent of the database's locale.
Bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

#: ``info`` of a column whose value is encrypted if it contains a secret (``secret_columns``).
ENCRYPTED = {"secrets": "encrypted"}
#: ``info`` of a column with a sentence for people, in which secrets are redacted.
REDACTED = {"secrets": "redacted"}


def child_of(column: str) -> sa.ForeignKey:
    """Return a reference to ``table.column``; the row is deleted with the row that it refers to."""
    return sa.ForeignKey(column, ondelete="CASCADE")


def link_to(column: str) -> sa.ForeignKey:
    """
    Return a reference to ``table.column``, which becomes NULL when the row that it refers to is deleted.

    The database checks the reference at the commit, because a stack's session writes its resources last, after the rows
    that they have created.
    """
    return sa.ForeignKey(column, ondelete="SET NULL", deferrable=True, initially="DEFERRED")


def serial() -> sa.Column[int]:
    """Return the primary key ``seq``, which increases with each row."""
    return sa.Column("seq", Serial, primary_key=True, autoincrement=True)
