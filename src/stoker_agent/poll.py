"""Know what this server has to run: one poll is always open."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Tuple

from stoker_agent import __version__
from stoker_agent.channel import Answer, Channel, Pauses, Unreachable
from stoker_agent.programs import available

_log = logging.getLogger("stoker-agent")
_FIRST_WAIT = 50
_KEY_REFUSED_SECONDS = 60.0

Entries = List[Mapping[str, Any]]


class Refused(Unreachable):
    """Coming back soon will not help."""


class Poller:
    """``on_change`` gets the entries of each new document."""

    def __init__(self, channel: Channel, own_hooks: Path, on_change: Callable[[Entries], None]) -> None:
        self._channel = channel
        self._own_hooks = own_hooks
        self._on_change = on_change
        self._etag: Optional[str] = None
        self._wait = _FIRST_WAIT
        self._pauses = Pauses()
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.once(self._wait)
                self._pauses.reset()
            except Refused as error:
                _log.error("%s: was this server deleted, or enrolled anew?", error)
                self._stopping.wait(_KEY_REFUSED_SECONDS)
            except Unreachable as error:
                _log.warning("cannot poll: %s", error)
                self._stopping.wait(self._pauses.next())

    def stop(self) -> None:
        self._stopping.set()

    def once(self, wait: int) -> None:
        """Raises Unreachable, of which Refused is one."""
        headers = {"X-Stoker-Agent": f"{__version__}; hooks={','.join(available(self._own_hooks))}"}
        if self._etag is not None:
            headers["If-None-Match"] = self._etag
        path = f"/agent/v1/document?wait={wait if self._etag else 0}"
        answer = self._channel.call("GET", path, headers=headers, seconds=wait + 20.0)
        if answer.status == 200:
            self._wait, entries = _document(answer, self._wait)
            self._on_change(entries)
            self._etag = answer.etag
        elif answer.status in (401, 403, 404):
            raise Refused("the server refuses this agent's key")
        elif answer.status != 304:
            raise Unreachable(f"the server answered {answer.status}")


def _document(answer: Answer, wait: int) -> Tuple[int, Entries]:
    """How long to wait for the next one, and the entries; what is no map can be none of ours."""
    try:
        said = answer.json()
        wait = max(1, int(said.get("poll_wait", wait)))
        entries = said["deployments"]
        if isinstance(entries, list):
            return wait, [each for each in entries if isinstance(each, dict)]
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise Unreachable(f"the document cannot be read: {answer.body[:100]!r}")
