"""The agent's log file: a full file is renamed to ``agent.log.1``, and the one before it to ``agent.log.2``."""

from __future__ import annotations

import logging
from pathlib import Path


class LogFile(logging.FileHandler):
    """
    Writes to ``path``. Before a line that would exceed ``most`` bytes, the file is renamed; ``older`` such files stay.

    ``logging.handlers.RotatingFileHandler`` does the same, and takes half a megabyte of memory for other handlers.
    Raises OSError if the file cannot be opened.
    """

    def __init__(self, path: Path, most: int, older: int) -> None:
        super().__init__(str(path))
        self._most = most
        #: The file and its predecessors, the newest first.
        self._names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, older + 1))]

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line. A file that cannot be renamed grows."""
        try:
            if self._is_full(len(self.format(record).encode("utf-8", "replace")) + 1):
                self._rename()
        except Exception:  # as in logging: what is logged must not fail
            self.handleError(record)
        super().emit(record)

    def _is_full(self, more: int) -> bool:
        size = 0 if self.stream is None else self.stream.tell()
        return size > 0 and size + more > self._most

    def _rename(self) -> None:
        for number in range(len(self._names) - 1, 0, -1):
            if self._names[number - 1].exists():
                self._names[number - 1].replace(self._names[number])
        before, self.stream = self.stream, self._open()
        if before is not None:
            before.close()
