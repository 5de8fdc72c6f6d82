"""While a run goes on: send what it writes and how far it says it is. Best effort; the run never waits for it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from stoker_agent.channel import Channel
from stoker_agent.web import Unreachable

_FIRST_WORD_SECONDS = 0.05
_EVERY_SECONDS = 0.2
#: How long a report waits for what was written last, when the server is slow.
_LAST_SECONDS = 5.0
_CHUNK = 256 * 1024
#: Beyond this the server keeps nothing more; the end of the output is in the report.
_SENT_MOST = 8 * 1024 * 1024
_PROGRESS_READ = 4096
_STREAMS = ("stdout", "stderr")


class Live:
    """One run's, with a channel of its own. A run that ends at once sends nothing: its report says it all."""

    def __init__(self, channel: Channel, id: str, folder: Path) -> None:
        self._channel = channel
        self._path = f"/agent/v1/runs/{id}"
        self._folder = folder
        self._offsets: Dict[str, int] = {name: 0 for name in _STREAMS}
        self._line: Optional[bytes] = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send the rest, unless the server is away."""
        self._ended.set()
        self._thread.join(_LAST_SECONDS)

    def _run(self) -> None:
        if self._ended.wait(_FIRST_WORD_SECONDS):
            return
        self._say({"state": "RUNNING", "percent": None, "message": None})
        over = False
        while not over:
            over = self._ended.wait(_EVERY_SECONDS)
            self._send_progress()
            for name in _STREAMS:
                self._send(name)
        self._channel.close()

    def _send(self, name: str) -> None:
        """All there is by now; the server says from where it wants to go on."""
        try:
            with self._folder.joinpath(name).open("rb") as file:
                while self._offsets[name] < _SENT_MOST:
                    file.seek(self._offsets[name])
                    data = file.read(_CHUNK)
                    if not data or not self._send_part(name, data):
                        return
        except (OSError, Unreachable, ValueError, KeyError, TypeError):
            return

    def _send_part(self, name: str, data: bytes) -> bool:
        """Whether the server took some of it."""
        offset = self._offsets[name]
        answer = self._channel.call(
            "POST",
            f"{self._path}/logs?stream={name}&offset={offset}",
            data,
            {"Content-Type": "application/octet-stream"},
        )
        if answer.status != 200:
            return False
        self._offsets[name] = int(answer.json()["offset"])
        return self._offsets[name] > offset

    def _send_progress(self) -> None:
        """The last whole line, when it is another than before: scripts may append to the file or write it anew."""
        try:
            with self._folder.joinpath("progress").open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - _PROGRESS_READ))
                whole, newline, _ = file.read(_PROGRESS_READ).rpartition(b"\n")
        except OSError:
            return
        line = whole.split(b"\n")[-1]
        if newline and line != self._line:
            self._line = line
            percent, message = parsed(line.decode("utf-8", "replace"))
            self._say({"state": "RUNNING", "percent": percent, "message": message})

    def _say(self, said: Dict[str, Any]) -> None:
        try:
            self._channel.call(
                "POST", f"{self._path}/progress", json.dumps(said).encode(), {"Content-Type": "application/json"}
            )
        except Unreachable:
            return


def parsed(line: str) -> Tuple[Optional[int], Optional[str]]:
    """``42 loading`` → (42, "loading"); a line that begins with no percentage is all message."""
    first, *rest = line.split(None, 1) or [""]
    number = first[:-1] if first.endswith("%") else first
    if number.isdecimal() and len(number) <= 3 and int(number) <= 100:
        return int(number), rest[0].strip() if rest else None
    return None, line.strip() or None
