"""
Output files of runs, within bounds: the middle of a large stream is released to the file system.

Streams are plain files that the run itself writes. An open stream therefore blocks nothing, and the output survives the
agent. The agent punches a hole between head and tail, so sizes and offsets do not change. Where a file system has no
holes (NFS before 4.2, FAT), the file remains complete until its run is forgotten.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Optional, Tuple

_log = logging.getLogger("stoker-agent")
#: Bytes that remain at either end of a stream after the run's result was accepted.
AFTERWARDS = 64 * 1024
#: Least number of bytes at either end that an active run keeps, because the report needs them.
LEAST = 1024 * 1024
_BLOCK = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class BoundedFile:
    """
    One output stream of one run. The file keeps ``most`` bytes, half of them at either end. Safe for several threads.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = max(2 * LEAST, most)
        self._lock = threading.Lock()
        #: The range of the hole.
        self._from = self._to = 0

    def size(self) -> int:
        """Return the size in bytes, or 0 if the file does not exist."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def trim(self) -> None:
        """Punch a hole if the middle is large enough. A call without effect is cheap."""
        size = self.size()
        # A hole for every few bytes would cost more than it releases.
        if size - max(self._to, self._most // 2) < self._most // 2 + LEAST:
            return
        with self._lock:
            self._from, self._to = punch(self._path, size, self._most // 2) or (self._from, self._to)

    def shrink(self) -> None:
        """Release all but the ends of a stream whose run has ended."""
        with self._lock:
            self._from, self._to = punch(self._path, self.size(), AFTERWARDS) or (self._from, self._to)

    def read(self, offset: int, length: int) -> Tuple[int, bytes]:
        """Return up to ``length`` bytes and their offset: ``offset``, or the end of the hole. Raises OSError."""
        with self._lock, self._path.open("rb") as file:
            if self._from <= offset < self._to:
                offset = self._to
            elif offset < self._from:
                length = min(length, self._from - offset)
            file.seek(offset)
            return offset, file.read(length)


def punch(path: Path, size: int, kept: int) -> Optional[Tuple[int, int]]:
    """
    Release all but the first and last ``kept`` bytes. Return the range of the hole, or None if that is impossible.
    """
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


def tidy(folder: Path, kept: int = AFTERWARDS) -> None:
    """
    Truncate the middle of a completed run's output, even if a process that it started still writes.

    ``kept`` is the number of bytes that remain at either end.
    """
    for name in ("stdout", "stderr", "answer"):
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            continue
        if status.st_blocks * 512 > 3 * kept:
            punch(path, status.st_size, kept)


@lru_cache(maxsize=None)
def _fallocate() -> Optional[Callable[[int, int, int, int], int]]:
    """Load fallocate on first use, because most agents never need it."""
    try:
        library = ctypes.CDLL(None)
        function: Any = getattr(library, "fallocate64", None) or library.fallocate
        function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    except (ImportError, OSError, AttributeError) as error:
        _log.warning("output.not_bounded: cannot bound the output of runs on this file system: %s", error)
        return None
    return function  # type: ignore[no-any-return]  # ctypes has no type for a C function
