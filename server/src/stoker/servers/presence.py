"""
Presence: what agents tell about themselves, by heartbeats and facts.

A heartbeat is the time of an agent's last poll, written once per heartbeat interval and not at every poll.

Heartbeats of agents without news are collected for a second: of an idle fleet, they would otherwise be most of the
database's work. Each process also logs the agents that it loses, and those that are back.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any

import structlog

from stoker.background_thread import BackgroundThread
from stoker.model.errors import Invalid, Unauthorized, Unavailable
from stoker.model.server import Server
from stoker.store import servers
from stoker.store.open import Store
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.servers")

#: Fraction of the heartbeat after which a poll is written, so that an early poll (``Waiter.wait``) does not postpone
#: the write to the next one.
_DUE_AFTER = 0.4
#: Seconds between writes if the agent's version or hooks change.
_CHANGED_SECONDS = 1.0
#: Seconds for which heartbeats of agents without news are collected, and agents in one transaction.
_COLLECT_SECONDS = 1.0
_COLLECTED = 1000
_LONGEST = 4096
#: Agents of which a process remembers the last write. Of more, it writes every poll of those that it has forgotten.
_REMEMBERED = 100_000
#: Agents that one check reads from the database at most, so that its transaction is short.
_CHECKED = 1000
#: Lost agents that one check logs each on a line of its own; further ones are counted.
_LOGGED = 50
_WORD = re.compile(r"[\w.+:-]{1,64}")


class LastSeen:
    """Writes heartbeats, with the agent's version and hooks."""

    def __init__(self, store: Store, heartbeat: float, offline_after: timedelta) -> None:
        """
        ``heartbeat``: seconds between two polls of an idle agent. ``offline_after``: time without a heartbeat after
        which an agent is lost.
        """
        self._store = store
        self._heartbeat = heartbeat
        self._offline_after = offline_after
        self._began = time.monotonic()
        self._lock = threading.Lock()
        #: Server id → the time of the last write (time.monotonic) and the agent's header; without lost agents.
        self._written: dict[str, tuple[float, str]] = {}
        #: Server id → the agent's header, of agents without news whose heartbeats are to be written.
        self._collected: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = BackgroundThread("stoker-last-seen", self._run)

    def start(self) -> None:
        """Start the thread that writes collected heartbeats and logs lost agents."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Does not wait for a database that does not answer."""
        self._stop.set()
        self._thread.join(timeout=1)

    def observe(self, server_id: str, header: str) -> bool:
        """
        Note a poll. Return whether ``write_all`` has to write the heartbeat before the answer. Performs no I/O.

        This is so if the agent is new to this process or its header has changed, because people and the checks of
        deployments wait for what the heartbeat contains. Other heartbeats are written within a second or two.
        """
        last = self._written.get(server_id)
        if last is None:
            return True
        now = time.monotonic()
        if last[1] != header[:_LONGEST]:
            return last[0] + _CHANGED_SECONDS < now
        if last[0] + self._heartbeat * _DUE_AFTER < now:
            with self._lock:
                self._written[server_id] = (now, last[1])
                self._collected[server_id] = last[1]
        return False

    def write(self, server_id: str, header: str) -> None:
        """Write the heartbeat. ``header``: the agent's own, ``<version>; hooks=script,ansible; modes=preview``."""
        self.write_all([(server_id, header)])

    def write_all(self, seen: Sequence[tuple[str, str]]) -> None:
        """Write the heartbeats of several agents, each with its server's id and its header, in one transaction."""
        now = time.monotonic()
        # All agents are new to a process that has just begun, and none of them was lost.
        has_just_begun = now - self._began < self._offline_after.total_seconds()
        may_be_back = set() if has_just_begun else {id for id, _ in seen if id not in self._written}

        def record(tx: Tx) -> None:
            for server_id, header in sorted(seen):  # two processes lock the rows in the same order
                if server_id in may_be_back:
                    self._log_return(tx, server_id)
                version, hooks, modes = parse_header(header)
                servers.record_seen(tx, server_id, tx.now, version, hooks, modes)

        self._store.write(record)
        # Only now: what the header says must be written again if this write failed.
        with self._lock:
            for server_id, header in seen:
                self._written.pop(server_id, None)
                self._written[server_id] = (now, header[:_LONGEST])
                self._collected.pop(server_id, None)
            for server_id in list(itertools.islice(self._written, max(0, len(self._written) - _REMEMBERED))):
                del self._written[server_id]

    def write_collected(self) -> None:
        """
        Write the heartbeats that ``observe`` has collected.

        Raises Unavailable if the database does not answer; the heartbeats then stay collected.
        """
        with self._lock:
            collected, self._collected = self._collected, {}
        seen = sorted(collected.items())  # two processes lock the rows in the same order
        for start in range(0, len(seen), _COLLECTED):
            try:
                # A lost heartbeat costs nothing, so the commit need not wait for the disk.
                self._store.write(partial(self._record_again, seen[start : start + _COLLECTED]), durable=False)
            except Unavailable:
                with self._lock:
                    self._collected = {**dict(seen[start:]), **self._collected}
                raise

    def _record_again(self, seen: Sequence[tuple[str, str]], tx: Tx) -> None:
        servers.record_seen_again(tx, tx.now, [server_id for server_id, _ in seen])

    def log_lost(self) -> None:
        """Log agents that no process has seen for ``offline_after``, and forget them."""
        before = time.monotonic() - self._offline_after.total_seconds()
        with self._lock:
            overdue = [server_id for server_id, (written, _) in self._written.items() if written < before][:_CHECKED]
            for server_id in overdue:
                del self._written[server_id]
        if not overdue:
            return
        with self._store.read() as tx:
            # Missing ones were deleted; others poll another process.
            existing = [server for id in overdue if (server := servers.find(tx, id)) is not None]
            lost = [server for server in existing if server.status(tx.now, self._offline_after) == "OFFLINE"]
        for server in lost[:_LOGGED]:
            _log.warning("agent.lost", **_fields(server), last_seen=str(server.last_seen))
        if len(lost) > _LOGGED:
            _log.warning("agents.lost", further=len(lost) - _LOGGED)

    def _log_return(self, tx: Tx, server_id: str) -> None:
        server = servers.find(tx, server_id)
        if server is not None and server.status(tx.now, self._offline_after) == "OFFLINE":
            tx.after_commit(partial(_log.info, "agent.back", **_fields(server), last_seen=str(server.last_seen)))

    def _run(self) -> None:
        checked_at = time.monotonic()
        while not self._stop.wait(_COLLECT_SECONDS):
            try:
                self.write_collected()
                if time.monotonic() >= checked_at + self._heartbeat:
                    checked_at = time.monotonic()
                    self.log_lost()
            except Unavailable as error:  # which the health check reports
                _log.debug("agents.not_checked", error=str(error))


def _fields(server: Server) -> dict[str, str]:
    return {"server_id": server.id, "server": server.name, "project_id": server.project_id}


@lru_cache(maxsize=1000)
def parse_header(header: str) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Return an agent's version, its hooks, and the modes that it knows. Invalid parts are ignored."""
    version, *parts = header[:_LONGEST].split(";")
    lists = {"hooks": (), "modes": ()} | {
        name.strip(): tuple(word for word in words.split(",") if _WORD.fullmatch(word))
        for name, _, words in (part.partition("=") for part in parts)
    }
    return version.strip() if _WORD.fullmatch(version.strip()) else None, lists["hooks"], lists["modes"]


#: Maximum levels of maps and lists.
DEEPEST = 8
#: Maximum characters of a name.
_LONGEST_NAME = 255


def store_facts(tx: Tx, server_id: str, facts: Mapping[str, Any]) -> None:
    """
    Store the facts that a server's agent reports. Unchanged facts write nothing.

    Raises Invalid for facts that are nested too deeply or have an invalid name.
    """
    _check(facts)
    server = servers.find(tx, server_id, for_update=True)
    if server is None:
        raise Unauthorized("This key is not valid, or has been revoked.")
    before = servers.find_facts(tx, server_id)
    if before is not None and before.facts == facts:
        return
    servers.put_facts(tx, server, before, facts)
    hooks = tuple(facts.get("hooks") or ())
    if hooks and hooks != server.hooks:
        # A run may have installed a hook: the next poll reports it only at the next heartbeat.
        servers.change(tx, server_id, hooks=hooks)


def _check(part: Mapping[str, Any] | list[Any], level: int = 1) -> None:
    """Check the names and the depth of facts, of which ``part`` is on this level."""
    if level > DEEPEST:
        raise Invalid(f"facts are nested too deeply: more than {DEEPEST} levels")
    for name in part if isinstance(part, Mapping) else ():
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise Invalid(f"facts: {name!r:.80} is no name: 1 to {_LONGEST_NAME} printable characters")
    for value in part.values() if isinstance(part, Mapping) else part:
        if isinstance(value, Mapping | list):
            _check(value, level + 1)
