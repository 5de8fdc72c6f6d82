"""Ids of all objects that Stoker creates: UUIDs as text."""

from __future__ import annotations

import re
from uuid import UUID

_REMOTE_NAME = re.compile(r"(.{36})(?:-([0-9]+))?", re.DOTALL)


def is_id(text: str) -> bool:
    """Return whether the text has the form of an id: a UUID in lower case with hyphens."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def remote_name(id: str, run: str) -> str:
    """
    Return the name of the object or queue of a server, or for the results of a resource or deployment.

    ``run`` is the number of the run that writes there; empty: all runs do.
    """
    return f"{id}-{run}" if run else id


def split_remote_name(name: str) -> tuple[str, str | None]:
    """Return the id and the number of the run in a name of ``remote_name``; (name, None) for any other name."""
    match = _REMOTE_NAME.fullmatch(name)
    return (match[1], match[2]) if match is not None and is_id(match[1]) else (name, None)
