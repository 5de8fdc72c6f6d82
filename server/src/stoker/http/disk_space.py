"""The free space of the file systems that a process writes to: its state directory, and a SQLite database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from stoker.model.errors import Unavailable

_MIB = 1024 * 1024
#: Bytes of a file system that should remain free; of a small one, a quarter.
_MINIMUM = 256 * _MIB


class DiskSpace:
    """The free space of the file systems of ``paths``."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def free(self) -> Iterator[tuple[Path, int]]:
        """Yield a path and the free bytes of each file system, once per file system."""
        return ((path, free) for path, free, _ in self._sizes())

    def check(self) -> None:
        """Raise Unavailable if a file system has less than the minimum."""
        for path, free, size in self._sizes():
            minimum = min(_MINIMUM, size // 4)
            if free < minimum:
                raise Unavailable(
                    f"the disk of {path} has {free // _MIB} MiB of free space, less than {minimum // _MIB} MiB:"
                    " free some before writes fail"
                )

    def _sizes(self) -> Iterator[tuple[Path, int, int]]:
        """Yield a path, the free bytes and the size of each file system."""
        seen = set()
        for path in self._paths:
            try:
                figures, device = os.statvfs(path), path.stat().st_dev
            except OSError:
                continue  # other checks report a directory that is gone
            if device not in seen:
                seen.add(device)
                yield path, figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize
