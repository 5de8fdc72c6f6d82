"""Progress of runs: the file that a run writes, and the signals that report it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from stoker_agent.outbox import Outbox
from stoker_agent.programs import inputs
from stoker_agent.transports import Sender

_READ = 4096
#: Transports on which an additional signal does not replace the result.
_MANY = ("HEAT_SIGNAL", "CFN_SIGNAL", "ZAQAR_SIGNAL")
#: A run that ends within this time sends no signal before its result.
_FIRST_SECONDS = 1.0
#: Pause between two signals, because each one is a transaction and an event at the receiver.
_EVERY_SECONDS = 10.0


class ProgressFile:
    """The file that ``$STOKER_PROGRESS`` names. Its last complete line states the run's progress."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"
        self._line: Optional[bytes] = None

    def news(self) -> Optional[Dict[str, Any]]:
        """Return the progress if the last line changed, else None. Scripts may append to the file or overwrite it."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - _READ))
                whole, newline, _ = file.read(_READ).rpartition(b"\n")
        except OSError:
            return None
        line = whole.split(b"\n")[-1]
        if not newline or line == self._line:
            return None
        self._line = line
        percent, message = parse(line.decode("utf-8", "replace"))
        return {"percent": percent, "message": message}


def parse(line: str) -> Tuple[Optional[int], Optional[str]]:
    """Parse a line: ``42 loading`` → (42, "loading"). A line without a leading percentage is a message only."""
    first, *rest = line.split(None, 1) or [""]
    number = first[:-1] if first.endswith("%") else first
    if number.isdecimal() and len(number) <= 3 and int(number) <= 100:
        return int(number), rest[0].strip() if rest else None
    return None, line.strip() or None


def wants_progress(entry: Mapping[str, Any]) -> bool:
    """Whether the run's inputs request progress signals, and its transport supports them."""
    values = inputs(entry)
    return values.get("deploy_status_aware") == "true" and values.get("deploy_signal_transport") in _MANY


class Signals:
    """
    Sends IN_PROGRESS signals by the sender of the result: when the run ``id`` begins, and when its percentage changes.
    """

    def __init__(self, outbox: Outbox, sender: Sender, id: str, folder: Path) -> None:
        self._outbox = outbox
        self._sender = sender
        self._id = id
        self._key = f"progress of {id}"
        self._file = ProgressFile(folder)
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="progress", daemon=True).start()

    def end(self) -> None:
        """End without a further signal, because the result follows."""
        self._ended.set()
        self._outbox.drop(self._key)

    @property
    def over(self) -> bool:
        """Whether ``end`` was called."""
        return self._ended.is_set()

    def _run(self) -> None:
        if self._ended.wait(_FIRST_SECONDS):
            return
        progress = self._file.news() or {"percent": None, "message": None}
        self._signal(progress)
        reported, at = progress["percent"], time.monotonic()
        while not self._ended.wait(max(0.2, at + _EVERY_SECONDS - time.monotonic())):
            progress = self._file.news() or progress
            if progress["percent"] != reported:
                self._signal(progress)
                reported, at = progress["percent"], time.monotonic()

    def _signal(self, progress: Mapping[str, Any]) -> None:
        values: Dict[str, Any] = {"deploy_status": "IN_PROGRESS"}
        if progress["percent"] is not None:
            values["deploy_percent"] = progress["percent"]
        if progress["message"]:
            values["deploy_status_reason"] = progress["message"]
        self._outbox.put(self._key, self._sender.place, lambda: self._send(values))

    def _send(self, values: Mapping[str, Any]) -> None:
        if not self._ended.is_set():
            self._sender.send(self._id, values)
