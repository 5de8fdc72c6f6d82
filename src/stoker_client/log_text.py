"""Of chunks of a log, the text that is new: a service may tell some of it again, and does not keep all of it."""

from stoker_client.shapes import LogChunk


class Unseen:
    """How far every stream has been told. Of a long one a service keeps the head and the tail, the tail with gaps at
    first; a tail that comes again, whole, is only partly new."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str, str], int] = {}

    def of(self, chunk: LogChunk) -> tuple[str, int]:
        """The text of ``chunk`` that has not come before, and how many bytes right before it are missing."""
        offset, size, text = chunk.get("offset"), chunk.get("size"), chunk["data"]
        if offset is None or size is None:
            return text, 0  # an older service
        key = str(chunk.get("server_id") or ""), chunk.get("config_id") or "", chunk["stream"]
        reached = self._next.get(key, 0)
        self._next[key] = max(reached, offset + size)
        if seen := max(0, reached - offset):
            text = text.encode()[seen:].decode(errors="ignore") if seen < size else ""
        return text, max(0, offset - reached)


def not_kept(chunk: LogChunk, missing: int, whose: str = "") -> str:
    """What is to be told of ``missing`` bytes before ``chunk``; ``whose`` names one of several servers."""
    of_whom = f" of {whose}" if whose else ""
    return f"{missing} bytes of the {chunk['stream']}{of_whom} were not kept here"
