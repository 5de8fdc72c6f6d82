"""How much of a run's output goes into its report: its head and its tail, with a mark where the gap is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Mapping

#: Bytes of a whole report; Heat refuses more than 1 MiB.
REPORT = 950000
#: Bytes of one stream that are read for it.
_STREAM = 400000
#: The end says most of what went wrong, the beginning what it was: so much of the room is the beginning's.
_HEAD = 0.25
_NOTE = "\n[… {} were cut here]\n"


def clipped_text(path: Path, limit: int = _STREAM) -> str:
    """The first and the last bytes of a file as text, ``limit`` in all; a line between them says how many are gone."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if size <= limit:
                return file.read(limit).decode("utf-8", "replace")  # and no more, however fast somebody goes on writing
            head = to_character(file.read(int(limit * _HEAD)))
            file.seek(size - (limit - int(limit * _HEAD)))
            tail = _from_character(file.read(limit - int(limit * _HEAD)))
    except FileNotFoundError:
        return ""
    note = _NOTE.format(f"{size - len(head) - len(tail)} bytes")
    return head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")


def _from_character(data: bytes) -> bytes:
    """The cut may have fallen into a character: what is left of it goes."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def to_character(data: bytes) -> bytes:
    """The same at the other side of the gap."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:  # where the last character begins
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return data[:-back] if length > back else data
    return data


def fitted(values: Mapping[str, Any], limit: int = REPORT) -> Dict[str, Any]:
    """
    Values that fit into one report of ``limit`` bytes: stdout and stderr lose their middles first.

    Outputs are never cut, as nobody would notice: when they are too large the report is of a failure, without them.
    """
    found = dict(values)
    for name in ("deploy_stdout", "deploy_stderr"):
        over = len(json.dumps(found)) - limit
        if over > 0 and isinstance(found.get(name), str):
            found[name] = _cut(found[name], over)
    if len(json.dumps(found)) <= limit:
        return found
    reason = f"The outputs are larger than a report may be, {limit} bytes"
    kept = {name: values[name] for name in ("deploy_stdout", "deploy_stderr") if isinstance(values.get(name), str)}
    return fitted({**kept, "deploy_status_reason": reason, "deploy_status_code": 1}, limit)


def _cut(text: str, over: int) -> str:
    """Shorter by at least ``over`` bytes of JSON, if it can be; a character may take up to twelve of them."""
    room = len(json.dumps(text)) - over - len(json.dumps(_NOTE.format(f"{len(text)} characters")))
    head = _most(text, int(room * _HEAD), from_end=False)
    tail = _most(text[head:], room - int(room * _HEAD), from_end=True)
    gap = len(text) - head - tail
    return text[:head] + _NOTE.format(f"{gap} characters") + text[len(text) - tail :]


def _most(text: str, room: int, *, from_end: bool) -> int:
    """How many characters of one end fit into ``room`` bytes of JSON."""
    low, high = 0, len(text)
    while low < high:
        count = (low + high + 1) // 2
        part = text[len(text) - count :] if from_end else text[:count]
        if len(json.dumps(part)) <= room:
            low = count
        else:
            high = count - 1
    return low
