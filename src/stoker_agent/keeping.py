"""
What a run writes, on disk, within bounds: of a stream that grows too large the middle is given back to the disk.

Streams stay plain files that the run itself writes, so that nobody is held up by one that is kept open, and nothing is
lost with the agent. A hole is made into what lies between head and tail: sizes and offsets stay what they are. Where a
file system cannot do that (NFS before 4.2, FAT) the file stays whole until the run is forgotten.
"""

from __future__ import annotations

import logging
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Optional, Tuple

_log = logging.getLogger("stoker-agent")
#: Of the stream of a run whose result somebody has, at either end.
AFTERWARDS = 64 * 1024
#: However little the server keeps, a report needs so much at either end.
LEAST = 1024 * 1024
_BLOCK = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class Kept:
    """One stream of one run: ``most`` bytes of it stay, half at either end. May be shared between threads."""

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = max(2 * LEAST, most)
        self._lock = threading.Lock()
        #: Offsets between which nothing is left.
        self._from = self._to = 0

    def size(self) -> int:
        """0 where nothing was written yet."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def trim(self) -> None:
        """Quick when there is nothing to do."""
        size = self.size()
        # Not for every byte: a hole is worth making when it is not small.
        if size - max(self._to, self._most // 2) < self._most // 2 + LEAST:
            return
        with self._lock:
            self._from, self._to = punch(self._path, size, self._most // 2) or (self._from, self._to)

    def read(self, offset: int, length: int) -> Tuple[int, bytes]:
        """From ``offset``, or where it goes on after what is gone. Raises OSError."""
        with self._lock, self._path.open("rb") as file:
            if self._from <= offset < self._to:
                offset = self._to
            elif offset < self._from:
                length = min(length, self._from - offset)
            file.seek(offset)
            return offset, file.read(length)


def punch(path: Path, size: int, kept: int) -> Optional[Tuple[int, int]]:
    """Give back all but the first and the last ``kept`` bytes; from where to where, or None when that cannot be."""
    start = -(-kept // _BLOCK) * _BLOCK
    end = (size - kept) // _BLOCK * _BLOCK
    if end <= start:
        return None
    call = _fallocate()
    if call is None:
        return None
    try:
        handle = os.open(str(path), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return (start, end) if call(handle, _PUNCH_HOLE | _KEEP_SIZE, start, end - start) == 0 else None
    finally:
        os.close(handle)


def tidy(folder: Path) -> None:
    """A run that is done with keeps little of what it wrote, also when something that it started goes on writing."""
    for name in ("stdout", "stderr", "answer"):
        path = folder / name
        try:
            found = path.stat()
        except OSError:
            continue
        if found.st_blocks * 512 > 3 * AFTERWARDS:
            punch(path, found.st_size, AFTERWARDS)


@lru_cache(maxsize=None)
def _fallocate() -> Optional[Callable[[int, int, int, int], int]]:
    """Looked for when it is needed first: most agents never do."""
    try:
        import ctypes

        library = ctypes.CDLL(None)
        found: Any = getattr(library, "fallocate64", None) or library.fallocate
        found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    except (ImportError, OSError, AttributeError) as error:
        _log.warning("the output of runs cannot be kept small here: %s", error)
        return None
    return found  # type: ignore[no-any-return]
