"""How far a run says it is: a file that it writes, and signals to whoever takes them while it goes on."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Protocol, Tuple

from stoker_agent.programs import inputs
from stoker_agent.senders import Senders
from stoker_agent.web import Unreachable

_READ = 4096
#: Transports on which a signal more does not replace the result.
_MANY = ("HEAT_SIGNAL", "CFN_SIGNAL", "ZAQAR_SIGNAL")
#: A run that ends sooner says nothing before that.
_FIRST_SECONDS = 1.0
#: Each signal is a transaction and an event somewhere.
_EVERY_SECONDS = 10.0


class Telling(Protocol):
    """Says how a run goes on, for as long as it does. Best effort: the run never waits for it."""

    def end(self) -> None: ...

    @property
    def over(self) -> bool:
        """Whether it reads what the run wrote no more."""
        ...


class ProgressFile:
    """What ``$STOKER_PROGRESS`` names: its last whole line is how far the run is."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"
        self._line: Optional[bytes] = None

    def news(self) -> Optional[Dict[str, Any]]:
        """When it is another line than before: scripts may append to the file or write it anew."""
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
        percent, message = parsed(line.decode("utf-8", "replace"))
        return {"percent": percent, "message": message}


def parsed(line: str) -> Tuple[Optional[int], Optional[str]]:
    """``42 loading`` → (42, "loading"); a line that begins with no percentage is all message."""
    first, *rest = line.split(None, 1) or [""]
    number = first[:-1] if first.endswith("%") else first
    if number.isdecimal() and len(number) <= 3 and int(number) <= 100:
        return int(number), rest[0].strip() if rest else None
    return None, line.strip() or None


def wants_progress(entry: Mapping[str, Any]) -> bool:
    said = inputs(entry)
    return said.get("deploy_status_aware") == "true" and said.get("deploy_signal_transport") in _MANY


class Signals:
    """
    By the transport that the result will go by: that it began, and its percentage now and then.

    ``senders`` are for this alone.
    """

    def __init__(self, senders: Senders, entry: Mapping[str, Any], source: str, folder: Path) -> None:
        self._senders = senders
        self._entry = entry
        self._source = source
        self._file = ProgressFile(folder)
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="progress", daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    @property
    def over(self) -> bool:
        return self._ended.is_set()

    def _run(self) -> None:
        if self._ended.wait(_FIRST_SECONDS):
            return
        said = self._file.news() or {"percent": None, "message": None}
        self._signal(said)
        told, at = said["percent"], time.monotonic()
        while not self._ended.wait(max(0.2, at + _EVERY_SECONDS - time.monotonic())):
            said = self._file.news() or said
            if said["percent"] != told:
                self._signal(said)
                told, at = said["percent"], time.monotonic()
        self._senders.close()

    def _signal(self, said: Mapping[str, Any]) -> None:
        values: Dict[str, Any] = {"deploy_status": "IN_PROGRESS"}
        if said["percent"] is not None:
            values["deploy_percent"] = said["percent"]
        if said["message"]:
            values["deploy_status_reason"] = said["message"]
        try:
            sender = self._senders.of(self._entry, self._source)
            if sender is not None:
                sender.send(self._entry["id"], values)
        except Unreachable:
            return
