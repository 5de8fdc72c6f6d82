"""What runs leave: exit codes, short descriptions of failures, and the unseen parts and lines of their logs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from stoker_client.shapes import LogChunk

Key = tuple[str, str, str]  # server, run, stream


def exit_code(status: str | None, status_code: Any) -> int:
    """
    Return the exit code for a run with the status ``status`` and the reported ``status_code``, None if unknown.

    It is the script's code if that states a failure, else 0 or 1.
    """
    if status == "COMPLETE":
        return 0
    try:
        code = int(status_code or 0)
    except (TypeError, ValueError):
        return 1
    if code < 0:
        return min(128 - code, 255)  # killed by a signal; the code follows the convention of shells
    return code if 0 < code < 256 else 1


#: Heat's wording of an exit code in the status reason of a deployment.
_CODE = re.compile(r"(?:, )?deploy_status_code : Deployment exited with non-zero status code: ([^\s,;:]+)")
#: Prefixes that stacks add to the reason of a resource.
_WRAPPING = re.compile(
    r"(?:Resource \w+ failed: |Error: |resources(?:\.[^\s:]+|\[[^\]]*\])+: |Deployment to server failed: )+"
)
#: The name of the server, as Stoker's stacks add it.
_SERVER = re.compile(r"on \S+(?:$|[:;])")
#: The path of a script in an agent's run directory.
_SCRIPT = re.compile(r"/\S*/[0-9a-f]{8}-[0-9a-f-]{27}[^\s/]*/script\b")


def failure_text(reason: str | None, outputs: Mapping[str, Any] | None = None) -> str:
    """
    Return a description such as ``exit 127: script: 7: nosuchcommand: not found``.

    ``reason`` is the status reason of a deployment, its resource or its stack. ``outputs`` are the run's output values,
    if known.
    """
    values = outputs or {}
    match = _CODE.search(reason or "")
    code = match[1] if match else values.get("deploy_status_code")
    rest = " ".join(_WRAPPING.sub("", _CODE.sub("", reason or "")).strip(" ,;").split())
    line = _SCRIPT.sub("script", last_line(str(values.get("deploy_stderr") or "")))
    texts = [text for text in (rest, line if line not in rest else "") if text]
    if code not in (None, "", 0, "0"):
        # Stoker names the server after the code: "exit 3 on web1"
        texts = [f"exit {code} {rest}", *texts[1:]] if _SERVER.match(rest) else [f"exit {code}", *texts]
    return ": ".join(texts) or "no reason given"


def last_line(text: str) -> str:
    """Return the last line of ``text`` that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def unseen(chunks: Iterable[LogChunk], *, is_partial: bool = False) -> Iterator[tuple[LogChunk, int]]:
    """
    Yield the unseen part of each chunk, without an offset, and how many bytes before it are missing.

    Services keep the beginning and the end of a long stream; the end may have gaps at first. When a complete end
    arrives later, it repeats parts that were already seen. ``is_partial``: nothing is missing before the first chunk.
    """
    ends: dict[Key, int] = {}
    for chunk in chunks:
        offset, size, text = chunk.get("offset"), chunk.get("size"), chunk["data"]
        missing = 0
        if offset is not None and size is not None:  # an older service sends no offsets
            end = ends.get(_key(chunk), offset if is_partial else 0)
            ends[_key(chunk)] = max(end, offset + size)
            missing = max(0, offset - end)
            if seen := max(0, end - offset):
                text = text.encode()[seen:].decode(errors="ignore") if seen < size else ""
        yield _with_text(chunk, text), missing


class Lines:
    """Joins the unseen parts of chunks to one chunk per line, which begins as the chunk does with which it began."""

    def __init__(self, split: Callable[[str], list[str]]) -> None:
        """``split`` returns the complete lines of a text, and at last the incomplete one."""
        self._split = split
        self._begun: dict[Key, LogChunk] = {}

    def add(self, chunk: LogChunk) -> Iterator[LogChunk]:
        """Yield the lines that end in ``chunk``."""
        begun = self._begun.pop(_key(chunk), None)
        *lines, last = self._split((begun["data"] if begun else "") + chunk["data"])
        for line in lines:
            yield _with_text(begun or chunk, f"{line}\n")
            begun = None
        if last:
            self._begun[_key(chunk)] = _with_text(begun or chunk, last)

    def end(self) -> Iterator[LogChunk]:
        """Yield the incomplete lines."""
        yield from self._begun.values()
        self._begun.clear()


def last_lines(chunks: Iterable[LogChunk], count: int) -> list[LogChunk]:
    """Return the last ``count`` lines of ``chunks``, as chunks."""
    lines = Lines(lambda text: text.split("\n"))
    ended = (line for chunk, _ in unseen(chunks) for line in lines.add(chunk))
    return list(deque(chain(ended, lines.end()), maxlen=count))


def _key(chunk: LogChunk) -> Key:
    return str(chunk.get("server_id") or ""), chunk.get("config_id") or "", chunk["stream"]


def _with_text(chunk: LogChunk, text: str) -> LogChunk:
    """Return ``chunk`` with other text and without an offset, which would no longer be correct."""
    other = {**chunk, "data": text}
    other.pop("offset", None)
    other.pop("size", None)
    return cast(LogChunk, other)
