"""Zaqar's messaging API v2, as its clients know it."""
