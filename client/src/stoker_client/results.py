"""What runs leave: exit codes, short descriptions of failures, and the unseen parts and lines of their logs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from stoker_client.shapes import Deployment, LogChunk


def exit_code(deployment: Deployment) -> int:
    """Return the exit code for an ended deployment: the script's code if it states a failure, else 0 or 1."""
    return exit_code_of(deployment["status"], (deployment.get("output_values") or {}).get("deploy_status_code"))


def exit_code_of(status: str | None, status_code: Any) -> int:
    """Return the exit code for a run with the status ``status`` and the reported ``status_code``, None if unknown."""
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
    line = last_line_of(values)
    texts = [text for text in (rest, line if line not in rest else "") if text]
    if code not in (None, "", 0, "0"):
        # Stoker names the server after the code: "exit 3 on web1"
        texts = [f"exit {code} {rest}", *texts[1:]] if _SERVER.match(rest) else [f"exit {code}", *texts]
    return ": ".join(texts) or "no reason given"


def last_line_of(outputs: Mapping[str, Any]) -> str:
    """Return the last line of standard error that is not blank."""
    lines = str(outputs.get("deploy_stderr") or "").splitlines()
    return _SCRIPT.sub("script", next((line.strip() for line in reversed(lines) if line.strip()), ""))


class Unseen:
    """
    Tracks the position in each stream.

    Services keep the beginning and the end of a long stream; the end may have gaps at first. When a complete end
    arrives later, it repeats parts that were already seen.
    """

    def __init__(self) -> None:
        self._next: dict[tuple[str, str, str], int] = {}

    def of(self, chunk: LogChunk) -> tuple[str, int]:
        """Return the unseen text of ``chunk``, and how many bytes before it are missing."""
        offset, size, text = chunk.get("offset"), chunk.get("size"), chunk["data"]
        if offset is None or size is None:
            return text, 0  # an older service sends no offsets
        key = str(chunk.get("server_id") or ""), chunk.get("config_id") or "", chunk["stream"]
        reached = self._next.get(key, 0)
        self._next[key] = max(reached, offset + size)
        if seen := max(0, reached - offset):
            text = text.encode()[seen:].decode(errors="ignore") if seen < size else ""
        return text, max(0, offset - reached)


def not_kept(chunk: LogChunk, missing: int, whose: str = "") -> str:
    """Return a note about ``missing`` bytes before ``chunk``. ``whose`` is a server's name, if there are several."""
    of_whom = f" of {whose}" if whose else ""
    return f"{missing} bytes of the {chunk['stream']}{of_whom} were not kept here"


def in_lines(chunks: Iterable[LogChunk]) -> Iterator[LogChunk]:
    """Yield the same text as one chunk per line, in the order in which lines end."""
    unseen = Unseen()
    partial: dict[tuple[str, str], LogChunk] = {}
    for chunk in chunks:
        key = chunk.get("config_id") or "", chunk["stream"]
        text, _ = unseen.of(chunk)
        rest = partial.pop(key, None)
        *lines, last = ((rest["data"] if rest else "") + text).split("\n")
        for line in lines:
            yield _with_text(rest or chunk, f"{line}\n")
            rest = None
        if last:
            partial[key] = _with_text(rest or chunk, last)
    yield from partial.values()


def last_lines(chunks: Iterable[LogChunk], count: int) -> list[LogChunk]:
    """Return the last ``count`` lines of ``chunks``, as chunks."""
    return list(deque(in_lines(chunks), maxlen=count))


def _with_text(chunk: LogChunk, text: str) -> LogChunk:
    """Return ``chunk`` with other text and without an offset, which would no longer be correct."""
    other = {**chunk, "data": text}
    other.pop("offset", None)
    other.pop("size", None)
    return cast(LogChunk, other)
