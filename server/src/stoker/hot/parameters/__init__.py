"""Parameters: their schemas in a template, and their values."""
