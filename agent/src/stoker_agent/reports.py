"""The values that the agent reports for a run: failures, and output within the limits of a report."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

#: Exit codes for runs that did not end by themselves, numbered as in shells.
TIMED_OUT, INTERRUPTED = 124, 137
#: Largest size of a report in bytes. Heat rejects bodies over 1 MiB.
REPORT = 950000
#: Bytes of one output stream that a report includes.
_STREAM = 400000
#: The beginning's share of shortened output. Errors are usually at the end.
_HEAD = 0.25
#: The bytes of a UTF-8 character that are not its first.
_CONTINUATION = bytes(range(0x80, 0xC0))
#: The end of the note in place of what was cut.
CUT = " were cut here]"
_NOTE = "\n[… {}" + CUT + "\n"


def failure(reason: str, code: int, folder: Optional[Path] = None) -> Dict[str, Any]:
    """Return the values of a failed run, with the output in ``folder`` or else ``reason`` as its stderr."""
    values: Dict[str, Any] = {"deploy_status_reason": reason, "deploy_status_code": code}
    return {**values, **read_streams(folder)} if folder else {**values, "deploy_stdout": "", "deploy_stderr": reason}


def read_streams(folder: Path) -> Dict[str, Any]:
    """Return the output of the run in ``folder``, as members of a result."""
    return {f"deploy_{name}": clip_text(folder / name) for name in ("stdout", "stderr")}


def clip_text(path: Path, limit: int = _STREAM) -> str:
    """
    Return the file's content as text, with at most ``limit`` bytes of it.

    A longer file is reduced to its beginning and end; a note between them states how many bytes are missing.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if size <= limit:
                # bounded, because a process may still append to the file
                return file.read(limit).decode("utf-8", "replace")
            head = to_character(file.read(int(limit * _HEAD)))
            file.seek(size - (limit - int(limit * _HEAD)))
            tail = file.read(limit - int(limit * _HEAD))
            tail = tail[:3].lstrip(_CONTINUATION) + tail[3:]
    except FileNotFoundError:
        return ""
    note = _NOTE.format(f"{size - len(head) - len(tail)} bytes")
    return head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")


def to_character(data: bytes) -> bytes:
    """Remove an incomplete character at the end of UTF-8 ``data``."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return data[: len(data) - len(decoder.getstate()[0])]


def fit(values: Mapping[str, Any], limit: int = REPORT) -> Dict[str, Any]:
    """
    Return values that fit into a report of ``limit`` bytes, as JSON. Shorten stdout first, then stderr.

    Outputs are never shortened, because the loss would not be visible. If the outputs are too large, the report states
    a failure and omits them.
    """
    fitted = dict(values)
    for name in ("deploy_stdout", "deploy_stderr"):
        text = fitted.get(name)
        if isinstance(text, str) and len(json.dumps(fitted)) > limit:
            low, high = 0, len(text)
            while low < high:
                count = (low + high + 1) // 2
                fitted[name] = _shorten(text, count)
                low, high = (count, high) if len(json.dumps(fitted)) <= limit else (low, count - 1)
            fitted[name] = _shorten(text, low)
    if len(json.dumps(fitted)) <= limit:
        return fitted
    reason = f"The outputs are larger than a report may be, {limit} bytes"
    kept = {name: values[name] for name in ("deploy_stdout", "deploy_stderr") if isinstance(values.get(name), str)}
    return fit({**kept, "deploy_status_reason": reason, "deploy_status_code": 1}, limit)


def _shorten(text: str, count: int) -> str:
    """Return ``count`` characters of a text, from its beginning and its end, with a note between them."""
    head = int(count * _HEAD)
    return text[:head] + _NOTE.format(f"{len(text) - count} characters") + text[len(text) - count + head :]
