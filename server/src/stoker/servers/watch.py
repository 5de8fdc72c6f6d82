"""Observes the end of processes, children or not: one thread over Linux's process file descriptors."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from collections.abc import Callable

from stoker.background_thread import BackgroundThread


class Watch:
    """Calls ``on_end`` with the name of each watched process that ends, on the watching thread."""

    def __init__(self, on_end: Callable[[str], None]) -> None:
        self._on_end = on_end
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._files: dict[str, int] = {}
        self._stopping = False
        self._wake_read, self._wake_write = os.pipe()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._thread = BackgroundThread("stoker-watch", self._run)
        self._thread.start()

    def add(self, name: str, pid: int) -> None:
        """Watch the process ``pid`` under a name; replaces a process of the same name."""
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
        """Stop watching the process of this name."""
        with self._lock:
            self._drop(name)

    def stop(self) -> None:
        """Stop the thread; processes that end later are not reported."""
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
