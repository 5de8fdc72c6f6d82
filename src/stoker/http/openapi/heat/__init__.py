"""Heat's API, described."""
