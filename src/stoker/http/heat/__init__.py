"""Heat's orchestration API v1, as its clients know it."""
