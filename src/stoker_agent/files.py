"""Durable file writes."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace the file atomically and flush it to disk. Raises OSError; the old content then remains."""
    fresh = path.with_name(f".{path.name}.new")
    handle = os.open(str(fresh), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def append(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Append to the file and flush it to disk. Raises OSError; a part of the data may then be in the file."""
    handle = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the directory's entries to disk."""
    handle = os.open(str(folder), os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
