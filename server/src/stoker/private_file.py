"""Files that only the user of the service may read."""

from __future__ import annotations

import os
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """
    Write a file with mode 0600, atomically and durably: a reader sees the old or the new content, never a part.

    Creates the directory with mode 0700 if necessary. If ``path`` is a link, its target is replaced.

    Raises OSError, which names the file.
    """
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:  # a write that fails, for example because the disk is full, does not name its file
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
