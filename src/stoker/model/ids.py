"""What names everything that is made here."""

from __future__ import annotations

from uuid import UUID


def is_id(text: str) -> bool:
    """Whether it may be an id, as this program writes them."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
