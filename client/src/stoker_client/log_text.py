"""Text of log chunks: detects repeated and missing parts, and splits chunks into lines."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import cast

from stoker_client.shapes import LogChunk


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
