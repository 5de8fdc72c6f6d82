"""Stoker's own nouns, beside Heat's API: servers, triggers, checks, schedules, hooks and more."""
