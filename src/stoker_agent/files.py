"""Durable file writes, and reads of files that another user wrote."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


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


def remove_tree(folder: Path) -> None:
    """Remove a directory with everything in it. What cannot be removed stays."""
    import shutil  # with its modules for archives, half a megabyte that an agent at rest need not load

    shutil.rmtree(str(folder), ignore_errors=True)


def open_trusted(path: Path) -> BinaryIO:
    """
    Open a file for reading. In a directory of another user, it must be a regular file of that user.

    Otherwise that user could name any file of this machine by a link, and the agent would report its content. Raises
    OSError.
    """
    owner = path.parent.stat().st_uid
    is_own = owner == os.geteuid()
    handle = os.open(str(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if is_own else os.O_NOFOLLOW))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or not (is_own or status.st_uid == owner):
        os.close(handle)
        raise OSError(errno.EPERM, "not a regular file of the run's user", str(path))
    return os.fdopen(handle, "rb")
