"""While a run goes on: send what it writes and how far it says it is. Best effort; the run never waits for it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping

from stoker_agent.channel import Channel
from stoker_agent.keeping import Kept
from stoker_agent.limits import to_character
from stoker_agent.progress import ProgressFile
from stoker_agent.web import Unreachable

_FIRST_WORD_SECONDS = 0.05
_EVERY_SECONDS = 0.2
#: A run that has nothing to say is said to go on so often.
_BEAT_SECONDS = 15.0
#: How long a report waits for what was written last, when the server is slow.
_LAST_SECONDS = 5.0
#: After these pauses it is tried again, while the report is long on its way.
_LAST_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_CHUNK = 256 * 1024
#: Once the head is sent: what has piled up to more than this is left out, so that followers see what is newest.
_BACKLOG = 2 * _CHUNK


class Live:
    """
    One run's, with a channel of its own. A run that ends at once sends nothing: its report says it all.

    ``most``: bytes of a stream that the server keeps, half of it of the head, half of the tail.
    """

    def __init__(self, channel: Channel, id: str, folder: Path, streams: Mapping[str, Kept], most: int) -> None:
        self._channel = channel
        self._path = f"/agent/v1/runs/{id}"
        self._progress = ProgressFile(folder)
        self._streams = streams
        self._most = most
        self._offsets: Dict[str, int] = {name: 0 for name in streams}
        #: From where on nothing was left out.
        self._whole_from: Dict[str, int] = {name: 0 for name in streams}
        self._said_at = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send the rest, unless the server is away."""
        self._ended.set()
        self._thread.join(_LAST_SECONDS)

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        if self._ended.wait(_FIRST_WORD_SECONDS):
            return
        self._say({"state": "RUNNING", "percent": None, "message": None})
        over = False
        while not over:
            over = self._ended.wait(_EVERY_SECONDS)
            news = self._progress.news()
            if news is not None:
                self._say({"state": "RUNNING", **news})
            for name, kept in self._streams.items():
                self._send(name, kept, over)
            if not over and time.monotonic() - self._said_at >= _BEAT_SECONDS:
                self._say({"beat": True})
        for pause in _LAST_PAUSES:
            if all(self._offsets[name] >= kept.size() for name, kept in self._streams.items()):
                break
            time.sleep(pause)
            for name, kept in self._streams.items():
                self._send(name, kept, over=True)
        self._channel.close()

    def _send(self, name: str, kept: Kept, over: bool) -> None:
        """
        What there is by now; the server says from where it wants to go on. Beyond the head no more than is worth
        seeing, and at the end as much as is kept of the tail, also of what was left out before.
        """
        head, size = self._most // 2, kept.size()
        tail = max(head, size - (self._most - head))
        newest = tail if over else size - _CHUNK
        try:
            if over and self._whole_from[name] > tail:
                self._send_chunk(name, kept, tail, size, over, "&again=1")
            while self._offsets[name] < size:
                offset = self._offsets[name]
                behind = offset >= head and size - offset > (size - tail if over else _BACKLOG)
                if not self._send_chunk(name, kept, newest if behind else offset, size, over):
                    return
        except (OSError, Unreachable, ValueError, KeyError, TypeError):
            return

    def _send_chunk(self, name: str, kept: Kept, offset: int, size: int, over: bool, word: str = "") -> bool:
        """Whether the server took some of what is from there on; ``word``: of what is said again."""
        start, data = kept.read(offset, min(_CHUNK, size - offset))
        whole = over and start + len(data) >= size
        part = data if whole else to_character(data)  # the rest of a character is still to come
        if not part:
            return False
        if start > self._offsets[name]:
            word = "&gap=1"  # what is before it will not come
        answer = self._channel.call(
            "POST",
            f"{self._path}/logs?stream={name}&offset={start}{word}",
            part,
            {"Content-Type": "application/octet-stream"},
        )
        if answer.status != 200:
            return False
        self._said_at = time.monotonic()
        known = self._offsets[name] = int(answer.json()["offset"])
        if word and known > start:
            self._whole_from[name] = start
        return known > start

    def _say(self, said: Dict[str, Any]) -> None:
        self._said_at = time.monotonic()
        try:
            self._channel.call(
                "POST", f"{self._path}/progress", json.dumps(said).encode(), {"Content-Type": "application/json"}
            )
        except Unreachable:
            return
