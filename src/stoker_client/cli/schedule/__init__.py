"""Schedules: triggers that come by themselves, at a time or by a cron expression."""
