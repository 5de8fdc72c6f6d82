"""When agents were last seen. Written now and then, not at every poll."""

from __future__ import annotations

import re
import threading
import time

from stoker.store import servers
from stoker.store.open import Store

_EVERY_SECONDS = 30.0
#: An agent that says something new is believed at once, but not at every call.
_CHANGED_SECONDS = 1.0
_LONGEST = 4096
_WORD = re.compile(r"[\w.+:-]{1,64}")


class Presence:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._written: dict[str, tuple[float, str]] = {}

    def due(self, server_id: str, said: str) -> bool:
        """Without I/O: whether ``write`` has something to do."""
        known = self._written.get(server_id)
        if known is None:
            return True
        patience = _EVERY_SECONDS if known[1] == said[:_LONGEST] else _CHANGED_SECONDS
        return known[0] + patience < time.monotonic()

    def write(self, server_id: str, said: str) -> None:
        """``said`` is the agent's own header: ``<version>; hooks=script,ansible``."""
        with self._lock:
            if len(self._written) > 100_000:
                self._written.clear()
            self._written[server_id] = (time.monotonic(), said[:_LONGEST])
        version, hooks = _parsed(said)
        self._store.write(lambda tx: servers.seen(tx, server_id, tx.now, version, hooks))


def _parsed(said: str) -> tuple[str | None, tuple[str, ...]]:
    """What cannot be read is taken as not said."""
    version, _, rest = said[:_LONGEST].partition(";")
    _, _, hooks = rest.partition("hooks=")
    known = tuple(word for word in hooks.split(",") if _WORD.fullmatch(word))
    return version.strip() if _WORD.fullmatch(version.strip()) else None, known
