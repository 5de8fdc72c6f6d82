"""The tables of ``schema.sql``: names, and columns with times."""

from __future__ import annotations

from stoker.store.migrate import expected_columns

#: The columns of every table by its name.
TABLES = {
    name: [column for table, column in sorted(expected_columns()) if table == name]
    for name in sorted({table for table, _ in expected_columns()} - {"schema_version"})
}
