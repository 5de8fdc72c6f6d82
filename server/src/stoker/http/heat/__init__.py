"""The Heat API: Heat's orchestration API v1, with Stoker's own additions."""
