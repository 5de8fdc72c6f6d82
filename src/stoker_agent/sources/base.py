"""What a source of documents is: one small class a file, each speaking one transport."""

from __future__ import annotations

import json
from typing import Any, List, Mapping, NamedTuple, Optional, Protocol

from stoker_agent.pauses import LONGEST, Pauses
from stoker_agent.web import Unreachable, Web

Entries = List[Mapping[str, Any]]
#: Keys of a section that a server's owner adds for this machine: documents say nothing of them.
LOCAL = ("ca_certificate", "ca_file", "timeout")


class Document(NamedTuple):
    """``collect`` is what the document says of ``os-collect-config``; empty where it says nothing."""

    entries: Entries
    collect: Mapping[str, Any]
    #: Whether it lists runs at all: one that does not says nothing of those under way.
    lists: bool = False
    #: How many may run at a time.
    concurrency: int = 1
    #: Bytes of one stream of a run that somebody is going to keep.
    log_bytes: int = 8 * 1024 * 1024


class Source(Protocol):
    name: str

    def fetch(self, wait: float) -> Optional[Document]:
        """
        The newest document; None when it is the one that was given last. Who can be answered late waits up to
        ``wait`` seconds for it. Raises Unreachable; Refused when coming back soon will not help.
        """

    def come_again(self, news: bool) -> float:
        """After how many seconds to fetch again, from whether there was something new."""
        ...

    def hurry(self) -> None:
        """Something new is to be expected soon."""

    def reset(self) -> None:
        """The next document is given whether it is new or not."""

    def close(self) -> None:
        """Leave nothing open. It may be fetched from again."""


class Polled:
    """What sources that are asked now and again have in common."""

    def __init__(self, web: Web, longest: float = LONGEST) -> None:
        self._web = web
        self._pauses = Pauses(longest)

    def come_again(self, news: bool) -> float:
        if news:
            self._pauses.reset()
        return self._pauses.next()

    def hurry(self) -> None:
        self._pauses.reset()

    def close(self) -> None:
        self._web.close()


def document(said: Any) -> Document:
    """A server's metadata; what is no map can be none of ours. Raises Unreachable for what is no metadata at all."""
    if not isinstance(said, dict):
        raise Unreachable("the document is no map")
    found, collect = said.get("deployments"), said.get("os-collect-config")
    return Document(
        [each for each in found if isinstance(each, dict)] if isinstance(found, list) else [],
        collect if isinstance(collect, dict) else {},
        isinstance(found, list),
        _whole(said.get("concurrency"), Document._field_defaults["concurrency"]),
        _whole(said.get("max_log_bytes"), Document._field_defaults["log_bytes"]),
    )


def _whole(said: Any, default: int) -> int:
    return said if isinstance(said, int) and not isinstance(said, bool) and said >= 1 else default


def parsed(text: bytes) -> Any:
    """JSON. Raises Unreachable."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreachable(f"the document cannot be read: {text[:100]!r}") from None


def seconds(section: Mapping[str, Any], default: float = 10.0) -> float:
    """How long an answer may take: ``timeout``, as os-collect-config has it."""
    try:
        return min(600.0, max(1.0, float(section["timeout"])))
    except (KeyError, TypeError, ValueError):
        return default


def ca_file(section: Mapping[str, Any], default: Optional[str]) -> Optional[str]:
    said = section.get("ca_certificate") or section.get("ca_file")
    return str(said) if said else default
