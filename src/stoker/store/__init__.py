"""Everything SQL: schema, migrations, two doors, one query module per noun."""
