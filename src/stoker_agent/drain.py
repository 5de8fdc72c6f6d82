"""The pause of the agent before its restart: no run begins, and active runs end."""

from __future__ import annotations

import threading
from typing import Mapping

from stoker_agent.active_run import ActiveRun


class Drain:
    """``changed`` is the agent's condition, which protects ``active``, the runs in progress."""

    def __init__(self, changed: threading.Condition, active: Mapping[str, ActiveRun]) -> None:
        self._changed = changed
        self._active = active
        #: Whether no further run may begin. Read with ``changed`` held.
        self.is_on = False

    def begin(self) -> None:
        """Let no new run begin, and return when no run is active."""
        with self._changed:
            self.is_on = True
            self._changed.wait_for(lambda: not self._active)

    def end(self) -> None:
        """Let runs begin again."""
        with self._changed:
            self.is_on = False
            self._changed.notify_all()
