"""Schedules: run triggers once or repeatedly at set times."""
