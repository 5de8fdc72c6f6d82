"""Hears when a process ends, its own child or not: one thread over Linux's process file descriptors."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from collections.abc import Callable


class Watch:
    """``on_end`` is called with the name a process was added under, in the watching thread."""

    def __init__(self, on_end: Callable[[str], None]) -> None:
        self._on_end = on_end
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._files: dict[str, int] = {}
        self._stopping = False
        self._wake_read, self._wake_write = os.pipe()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="stoker-watch", daemon=True)
        self._thread.start()

    def add(self, name: str, pid: int) -> None:
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            self._on_end(name)
            return
        with self._lock:
            self._drop(name)
            self._files[name] = file
            self._selector.register(file, selectors.EVENT_READ, name)
        os.write(self._wake_write, b".")

    def forget(self, name: str) -> None:
        with self._lock:
            self._drop(name)

    def stop(self) -> None:
        self._stopping = True
        os.write(self._wake_write, b".")
        self._thread.join(timeout=2)
        with self._lock:
            for name in list(self._files):
                self._drop(name)
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _drop(self, name: str) -> bool:
        file = self._files.pop(name, None)
        if file is None:
            return False
        with contextlib.suppress(KeyError):
            self._selector.unregister(file)
        os.close(file)
        return True

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                if key.data is None:
                    os.read(self._wake_read, 4096)
                    continue
                with self._lock:
                    watched = self._drop(key.data)
                if watched and not self._stopping:
                    self._on_end(key.data)
