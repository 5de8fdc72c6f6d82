"""``event_sinks`` of an environment, or of the options of a config: queues that receive events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.hot.flaw import flaw
from stoker.hot.paths import Path
from stoker.hot.shapes import map_at
from stoker.hot.words import quote_word
from stoker.model.errors import Invalid

_TYPE = "zaqar-queue"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
#: Seconds until a message expires: default, minimum and maximum.
_TTL, _SHORTEST, _LONGEST = 3600, 60, 1_209_600
#: Sinks of one config at most.
_MOST = 10


@dataclass(frozen=True, slots=True)
class Sink:
    """A queue that receives events; ``ttl`` is the life of a message in seconds."""

    queue: str
    ttl: int

    def to_json(self) -> dict[str, Any]:
        """The entry as written."""
        return {"type": _TYPE, "target": self.queue} | ({} if self.ttl == _TTL else {"ttl": self.ttl})

    @classmethod
    def of(cls, raw: Any, index: int) -> Sink:
        """Parse one entry. Raises a flaw."""
        path: Path = ("event_sinks", index)
        data: Mapping[str, Any] = map_at(raw, path)
        for name in data:
            if name not in ("type", "target", "ttl"):
                raise flaw((*path, name), "an event sink has a type, a target and perhaps a ttl", Invalid)
        if data.get("type") != _TYPE:
            raise flaw((*path, "type"), f"the type of an event sink is {_TYPE}", Invalid)
        target, ttl = data.get("target"), data.get("ttl", _TTL)
        if not isinstance(target, str) or not _NAME.fullmatch(target):
            raise flaw((*path, "target"), f"the name of a queue is needed, not {quote_word(target)}", Invalid)
        if isinstance(ttl, bool) or not isinstance(ttl, int) or not _SHORTEST <= ttl <= _LONGEST:
            raise flaw((*path, "ttl"), f"seconds from {_SHORTEST} to {_LONGEST} are needed", Invalid)
        return cls(target, ttl)


def list_sinks(raw: Any) -> tuple[Sink, ...]:
    """Parse the option ``event_sinks`` of a config; None has no sinks. Raises a flaw."""
    if raw is None:
        return ()
    if not isinstance(raw, list | tuple) or len(raw) > _MOST:
        raise flaw(("event_sinks",), f"a list of at most {_MOST} event sinks is needed", Invalid)
    return tuple(Sink.of(entry, index) for index, entry in enumerate(raw))
