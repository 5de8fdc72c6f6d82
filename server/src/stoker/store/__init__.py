"""All SQL: schema, migrations, read and write transactions, and one query module per noun."""
