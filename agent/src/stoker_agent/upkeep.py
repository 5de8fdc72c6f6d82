"""Periodic work of the running agent: output files, lost results, and signs of life for systemd's watchdog."""

from __future__ import annotations

import threading
import time
from typing import Callable, Sequence

from stoker_agent.service_manager import ServiceManager

#: systemd's limit (``WatchdogSec``) is five times this pause.
_PAUSE_SECONDS = 60.0


class Upkeep:
    """
    Calls ``tasks`` once a minute, in a thread.

    One of them takes the agent's lock. If the agent hangs, or one of the threads ``vital`` has ended, systemd gets no
    sign of life and restarts the agent.
    """

    def __init__(
        self, tasks: Sequence[Callable[[], None]], manager: ServiceManager, vital: Sequence[threading.Thread]
    ) -> None:
        self._tasks = tasks
        self._manager = manager
        self._vital = vital

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="tidy", daemon=True).start()

    def _run(self) -> None:
        while True:
            for task in self._tasks:
                task()
            if all(thread.is_alive() for thread in self._vital):
                self._manager.notify("WATCHDOG=1")
            time.sleep(_PAUSE_SECONDS)
