"""
Writes the files of runs. What cannot be written is kept in memory and tried again, and no run begins until it is there.

On a full disk, the output of ended runs makes room. Stoker shows why no run begins, until one can.
"""

from __future__ import annotations

import errno
import json
import logging
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence, Set

from stoker_agent.files import remove_tree, write
from stoker_agent.outbox import Outbox

_log = logging.getLogger("stoker-agent")
#: Seconds until the agent tries again to write.
PAUSE_SECONDS = 5.0


class Disk:
    """
    The disk with the directory ``folder`` of all runs.

    ``release`` makes room. Stoker learns of a problem through ``outbox``, and who waits for ``changed`` of each change.
    """

    def __init__(
        self,
        folder: Path,
        outbox: Outbox,
        changed: Optional[threading.Condition] = None,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._outbox = outbox
        self._changed = changed or threading.Condition()
        self._release = release
        #: Called when a problem begins and ends.
        self.on_change: Callable[[], None] = lambda: None
        #: Why the agent cannot write, for people; empty if it can.
        self.reason = ""
        self._lock = threading.Lock()
        #: What is not written, by key.
        self._left: Dict[str, Callable[[], object]] = {}
        #: The runs whose status at Stoker has the reason.
        self._reported: Set[str] = set()

    def write(self, key: str, action: Callable[[], object], later: Optional[Callable[[], object]] = None) -> bool:
        """
        Call ``action``, which writes files. Return whether that succeeded.

        After an OSError, ``retry`` calls ``later``, by default ``action``, until a call or another write with the same
        key succeeds.
        """
        error = None
        try:
            action()
        except OSError as raised:
            error = raised
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self._release()
        with self._lock:
            self._left.pop(key, None)
            if error is not None:
                self._left[key] = later or action
                self._set(f"the agent cannot write {self._folder}: {error.strerror or error}")
            elif not self._left:
                self._set("")
        return error is None

    def retry(self) -> bool:
        """Try again to write what is left. Return whether all is written."""
        for key, action in list(self._left.items()):
            self.write(key, action)
        return not self._left

    def holds(self, key: str) -> bool:
        """Whether what was written with this key is only in memory."""
        return key in self._left

    def probe(self, entry: Any = " " * 2048) -> None:
        """Write as much as the beginning of a run with this entry does. Raises OSError."""
        folder = self._folder.with_name("probe")
        try:
            write(folder / "entry.json", json.dumps(entry).encode(), folder_mode=0o700, sync=False)
        finally:
            remove_tree(folder)

    def report(self, ids: Sequence[str]) -> None:
        """Report the reason as the progress of runs that wait."""
        with self._lock:
            for id in {*ids} - self._reported:
                self._reported.add(id)
                body = {"state": "WAITING", "message": self.reason}
                self._outbox.post(_key(id), "POST", f"/agent/v1/runs/{id}/progress", body)

    def _set(self, reason: str) -> None:
        if reason == self.reason:
            return
        self.reason = reason
        while self._reported:  # no report is sent that is not true any more
            self._outbox.drop(_key(self._reported.pop()))
        if reason:
            _log.error("run.not_started: no run can start: %s", reason)
        else:
            _log.info("run.possible: runs can start again")
        with self._changed:
            self._changed.notify_all()
        self.on_change()


def _key(id: str) -> str:
    return f"reason why {id} waits"
