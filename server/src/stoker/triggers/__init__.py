"""Triggers and schedules: runs of actions and configs on servers, on demand or at set times."""
