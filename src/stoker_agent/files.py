"""Files that are whole or not there, also after the power was cut."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Raises OSError, and then the old content stands."""
    fresh = path.with_name(f".{path.name}.new")
    handle = os.open(str(fresh), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def append(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Raises OSError, and then some of it may be there."""
    handle = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(str(folder), os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
