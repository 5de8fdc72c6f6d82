"""Heartbeats: the time of each agent's last poll, written once per heartbeat interval and not at every poll."""

from __future__ import annotations

import re
import threading
import time

from stoker.store import servers
from stoker.store.open import Store

#: Fraction of the heartbeat after which a poll is written, so that a slightly early poll does not postpone the write to
#: the next one.
_DUE_AFTER = 0.8
#: Seconds between writes if the agent's version or hooks change.
_CHANGED_SECONDS = 1.0
_LONGEST = 4096
_WORD = re.compile(r"[\w.+:-]{1,64}")


class LastSeen:
    """Writes heartbeats, with the agent's version and hooks."""

    def __init__(self, store: Store, heartbeat: float) -> None:
        """``heartbeat``: seconds between two polls of an idle agent."""
        self._store = store
        self._interval = heartbeat * _DUE_AFTER
        self._lock = threading.Lock()
        self._written: dict[str, tuple[float, str]] = {}

    def due(self, server_id: str, said: str) -> bool:
        """Return whether ``write`` has to write. Performs no I/O."""
        known = self._written.get(server_id)
        if known is None:
            return True
        patience = self._interval if known[1] == said[:_LONGEST] else _CHANGED_SECONDS
        return known[0] + patience < time.monotonic()

    def write(self, server_id: str, said: str) -> None:
        """Write the heartbeat. ``said``: the agent's header, ``<version>; hooks=script,ansible``."""
        with self._lock:
            if len(self._written) > 100_000:
                self._written.clear()
            self._written[server_id] = (time.monotonic(), said[:_LONGEST])
        version, hooks = _parse(said)
        self._store.write(lambda tx: servers.record_seen(tx, server_id, tx.now, version, hooks))


def _parse(said: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the version and the hooks. Invalid parts are ignored."""
    version, _, rest = said[:_LONGEST].partition(";")
    _, _, hooks = rest.partition("hooks=")
    known = tuple(word for word in hooks.split(",") if _WORD.fullmatch(word))
    return version.strip() if _WORD.fullmatch(version.strip()) else None, known
