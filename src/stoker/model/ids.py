"""Ids of all objects that Stoker creates: UUIDs as text."""

from __future__ import annotations

from uuid import UUID


def is_id(text: str) -> bool:
    """Return whether the text has the form of an id: a UUID in lower case with hyphens."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
