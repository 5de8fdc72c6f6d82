"""Reports of a run's output and progress while it is active: to Stoker (``Live``), or as signals (``Signals``)."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from stoker_agent.backoff import Backoff
from stoker_agent.outbox import Outbox
from stoker_agent.output_files import BoundedFile
from stoker_agent.programs import inputs
from stoker_agent.reports import CUT, to_character
from stoker_agent.transports import Sender
from stoker_agent.web import Answer, Busy, Channel, Unreachable

_READ = 4096
#: Transports on which an additional signal does not replace the result.
_MANY = ("HEAT_SIGNAL", "CFN_SIGNAL", "ZAQAR_SIGNAL")
#: A run that ends within this time sends no signal before its result.
_FIRST_SIGNAL_SECONDS = 1.0
#: Pause between two signals, because each one is a transaction and an event at the receiver.
_BETWEEN_SIGNALS_SECONDS = 10.0
#: A run that ends within this time sends nothing, because its report contains everything.
_FIRST_WORD_SECONDS = 0.2
_EVERY_SECONDS = 0.2
#: The interval of heartbeats for a run without output or progress.
_HEARTBEAT_SECONDS = 15.0
#: The longest time for which the end of a run waits for the last output.
_LAST_SECONDS = 5.0
#: Pauses between the retries for remaining output. The run's result is usually reported before them.
_LAST_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_CHUNK = 256 * 1024
#: A result of at most so many bytes of JSON is reported as it is, so its output need not be sent before.
_SHORT = 64 * 1024
#: In a result, Stoker takes these for signs that output is not as it was: a note of a cut, and undecodable bytes.
_CHANGED = (CUT, "\ufffd")
#: After the head is sent, a larger backlog is skipped, so that readers receive the newest output.
_BACKLOG = 2 * _CHUNK


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


class Signals(threading.Thread):
    """
    Sends IN_PROGRESS signals by the sender of the result: when the run ``id`` begins, and when its percentage changes.
    """

    def __init__(self, outbox: Outbox, sender: Sender, id: str, folder: Path) -> None:
        super().__init__(name="progress", daemon=True)
        self._outbox = outbox
        self._sender = sender
        self._id = id
        self._key = f"progress of {id}"
        self._file = ProgressFile(folder)
        self._ended = threading.Event()
        self.start()

    def end(self, _: Mapping[str, Any]) -> None:
        """End without a further signal, because the result follows."""
        self._ended.set()
        self._outbox.drop(self._key)

    def run(self) -> None:
        """Send signals until ``end`` is called."""
        if self._ended.wait(_FIRST_SIGNAL_SECONDS):
            return
        progress = self._file.news() or {"percent": None, "message": None}
        self._signal(progress)
        reported, at = progress["percent"], time.monotonic()
        while not self._ended.wait(max(0.2, at + _BETWEEN_SIGNALS_SECONDS - time.monotonic())):
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


class Live(threading.Thread):
    """
    Sends the output and progress of one run (POST /agent/v1/runs/ID/logs and /progress) on its own channel.

    ``most`` is the number of bytes per stream that the server keeps: one half from the beginning, one half from the
    end.
    """

    def __init__(self, channel: Channel, id: str, folder: Path, streams: Mapping[str, BoundedFile], most: int) -> None:
        super().__init__(name="live", daemon=True)
        self._channel = channel
        self._path = f"/agent/v1/runs/{id}"
        self._progress = ProgressFile(folder)
        self._streams = streams
        self._most = most
        self._offsets: Dict[str, int] = {name: 0 for name in streams}
        #: By stream: the offset after which the server has received everything.
        self._whole_from: Dict[str, int] = {name: 0 for name in streams}
        self._sent_at = 0.0
        #: When the server, which has asked for a pause, gets requests again.
        self._retry = Backoff()
        self._ended = threading.Event()
        #: The result of the run, if Stoker expects one.
        self._result: Mapping[str, Any] = {}
        self.start()

    def end(self, result: Mapping[str, Any]) -> None:
        """Send the remaining output unless ``result`` contains it, and wait at most five seconds for it."""
        self._result = result
        self._ended.set()
        self.join(_LAST_SECONDS)

    def run(self) -> None:
        """Send news until ``end`` is called, then the rest of the output."""
        if self._ended.wait(_FIRST_WORD_SECONDS):
            return
        self._say({"state": "RUNNING", "percent": None, "message": None})
        self._send_news()
        while not self._ended.wait(_EVERY_SECONDS):
            self._send_news()
            if time.monotonic() - self._sent_at >= _HEARTBEAT_SECONDS:
                self._say({"beat": True})
        self._send_progress()
        if not self._is_in_result():
            self._send_rest()
        self._channel.close()

    def _is_in_result(self) -> bool:
        """Return whether the result contains the whole output, which Stoker then stores from it."""
        if not self._result or len(json.dumps(self._result)) > _SHORT:
            return False
        texts = {name: str(self._result.get(f"deploy_{name}")) for name in self._streams}
        if any(sign in text for sign in _CHANGED for text in texts.values()):
            return False
        try:
            return all(
                kept.size() == 0 or kept.read(0, _SHORT)[1] == texts[name].encode()
                for name, kept in self._streams.items()
            )
        except OSError:
            return False

    def _send_rest(self) -> None:
        """Send the remaining output of the run, which has ended."""
        for pause in (0.0, *_LAST_PAUSES):
            time.sleep(pause)
            for name, kept in self._streams.items():
                self._send(name, kept, over=True)
            if all(self._offsets[name] >= kept.size() for name, kept in self._streams.items()):
                break

    def _send_news(self) -> None:
        """Send the new progress and output."""
        self._send_progress()
        for name, kept in self._streams.items():
            self._send(name, kept, over=False)

    def _send_progress(self) -> None:
        news = self._progress.news()
        if news is not None:
            self._say({"state": "RUNNING", **news})

    def _send(self, name: str, kept: BoundedFile, over: bool) -> None:
        """
        Send the new output of one stream.

        The server's answer states the next offset. Beyond the head, a large backlog is skipped. At the end of the run,
        the whole tail is sent, including parts that were skipped before.
        """
        head, size = self._most // 2, kept.size()
        tail = max(head, size - (self._most - head))
        newest = tail if over else size - _CHUNK
        try:
            if over and self._whole_from[name] > tail:
                self._send_chunk(name, kept, tail, size, over, "&again=1")
            while self._offsets[name] < size:
                offset = self._offsets[name]
                is_skipping = offset >= head and size - offset > (size - tail if over else _BACKLOG)
                if not self._send_chunk(name, kept, newest if is_skipping else offset, size, over):
                    return
        except (OSError, Unreachable, ValueError, KeyError, TypeError):
            return

    def _send_chunk(self, name: str, kept: BoundedFile, offset: int, size: int, over: bool, word: str = "") -> bool:
        """
        Send one chunk from ``offset``. Return whether the server accepted some of it.

        ``word`` is an additional query parameter, used when a chunk is sent again.
        """
        start, data = kept.read(offset, min(_CHUNK, size - offset))
        whole = over and start + len(data) >= size
        part = data if whole else to_character(data)  # the rest of the character is not written yet
        if not part:
            return False
        if start > self._offsets[name]:
            word = "&gap=1"  # the bytes before ``start`` will not follow
        answer = self._post(f"/logs?stream={name}&offset={start}{word}", part, "application/octet-stream")
        if answer.status != 200:
            return False
        self._sent_at = time.monotonic()
        next_offset = self._offsets[name] = int(answer.json()["offset"])
        if word and next_offset > start:
            self._whole_from[name] = start
        return next_offset > start

    def _say(self, body: Dict[str, Any]) -> None:
        self._sent_at = time.monotonic()
        try:
            self._post("/progress", json.dumps(body).encode(), "application/json")
        except Unreachable:
            return

    def _post(self, path: str, body: bytes, media_type: str) -> Answer:
        """Send a request. Raises Unreachable, also during a pause that the server has requested."""
        if time.monotonic() < self._retry.due:
            raise Busy("the server has asked for a pause")
        try:
            return self._channel.call("POST", self._path + path, body, {"Content-Type": media_type})
        except Busy as error:
            if error.retry_after:
                self._retry.postpone(error)
            raise
