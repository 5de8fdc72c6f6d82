"""What a stream of events will tell, written down beforehand."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Say:
    """An event."""

    name: str
    data: Any
    id: int | None = None


@dataclass(frozen=True)
class Raw:
    """Bytes as they are: half an event, for one."""

    content: bytes


@dataclass(frozen=True)
class Wait:
    """Say that the story has come here, and go on when told."""

    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)


DROP = object()  # the connection ends in the middle
END = Say("end", {})
Story = list[Any]


def numbered(name: str, data: Any, id_: int | None) -> bytes:
    """An event on the wire."""
    head = "" if id_ is None else f"id: {id_}\n"
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def target(position: int, status: str, reason: str | None = None, **run: Any) -> Say:
    """What became of one server."""
    more = {"run": run} if run else {}
    return Say("target", {"position": position, "status": status, "status_reason": reason, **more})


def trigger(status: str, **more: Any) -> Say:
    return Say("trigger", {"status": status, **more})
