"""
The state that a running agent shows to ``stoker-agent status``.

``<state>/status.json`` is replaced when something changes: the start, the first answer, a failure, the end of a
failure. The modification time of ``<state>/last-contact`` is the time of the last answer, so an idle agent writes no
file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence

from stoker_agent import __version__
from stoker_agent.files import read_map, write_json
from stoker_agent.web import Refused, Unreachable

_NAME, _CONTACT = "status.json", "last-contact"


class StatusFile:
    """
    Writes the status of this process, which uses these sources, below the directory ``state``.

    Failed writes are ignored: a full disk must not stop runs. After the start, only the thread that polls writes.
    """

    def __init__(self, state: Path, sources: Sequence[str]) -> None:
        self._path = state / _NAME
        self._contact = state / _CONTACT
        self._values: Dict[str, Any] = {
            "pid": os.getpid(),
            "version": __version__,
            "program": str(Path(sys.argv[0]).absolute()),
            "started_at": time.time(),
            "sources": list(sources),
            "source": None,
            "failures": {},
        }
        self._write()

    def record_contact(self, source: str) -> None:
        """Record that the source has answered."""
        with contextlib.suppress(OSError):
            self._contact.touch(mode=0o600)
        failures: Dict[str, Any] = self._values["failures"]
        if self._values["source"] == source and source not in failures:
            return
        failures.pop(source, None)
        self._values["source"] = source
        self._write()

    def record_failure(self, source: str, error: Unreachable) -> None:
        """Record that the source does not answer, or refuses this agent."""
        message = str(error)
        failures: Dict[str, Any] = self._values["failures"]
        before = failures.get(source, {})
        if before.get("message") == message:
            return
        failures[source] = {
            "message": message,
            "since": before.get("since", time.time()),
            "is_refused": isinstance(error, Refused),
        }
        self._write()

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            # not flushed to disk: after a crash of the machine, no agent runs
            write_json(self._path, self._values, sync=False)


def read_status(state: Path) -> Mapping[str, Any]:
    """Return the values of the last agent process, with ``last_contact`` if a source has ever answered."""
    values = read_map(state / _NAME)
    with contextlib.suppress(FileNotFoundError):
        values["last_contact"] = (state / _CONTACT).stat().st_mtime
    return values
