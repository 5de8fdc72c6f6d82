"""Lines that a tool of a hook writes while the tool runs, from which the hook reads its progress."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Callable

#: Time for the last lines of a tool that has ended. A daemon that it started may keep the pipe open.
_LAST_SECONDS = 5.0
#: Pause between two looks at a growing file.
_PAUSE_SECONDS = 0.2


class LinePipe:
    """
    A pipe for the output of a tool. The value of the context is the pipe's file descriptor.

    Each line goes to this process's own output if ``passes`` returns True for it.
    """

    def __init__(self, passes: Callable[[bytes], bool]) -> None:
        self._passes = passes

    def __enter__(self) -> int:
        source, self._target = os.pipe()
        self._thread = threading.Thread(target=self._forward, args=(source,), daemon=True)
        self._thread.start()
        return self._target

    def __exit__(self, *_: object) -> None:
        os.close(self._target)
        self._thread.join(_LAST_SECONDS)

    def _forward(self, source: int) -> None:
        with os.fdopen(source, "rb") as lines:
            for line in lines:
                if self._passes(line):
                    sys.stdout.buffer.write(line)
                    sys.stdout.buffer.flush()


class GrowingFile:
    """A log file that a tool writes. Inside the context, each new line goes to ``handle``."""

    def __init__(self, path: Path, handle: Callable[[bytes], None]) -> None:
        self._path = path
        self._handle = handle
        self._ended = threading.Event()

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_LAST_SECONDS)

    def _follow(self) -> None:
        with self._path.open("rb") as file:
            rest = b""
            is_last = False
            while not is_last:
                is_last = self._ended.wait(_PAUSE_SECONDS)
                *lines, rest = (rest + file.read()).split(b"\n")
                for line in lines:
                    self._handle(line)
