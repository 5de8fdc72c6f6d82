"""
The spool: requests of agents that wait for the central Stoker, durable and in order for each agent.

Requests contain results and the keys of agents, so they are encrypted with a key that derives from the relay's own key.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections import Counter
from dataclasses import dataclass

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from stoker_relay.database import Database
from stoker_relay.metrics import Metrics
from stoker_relay.settings import Unusable

_NONCE = 12
_PURPOSE = b"stoker relay spool"
#: The name of the encrypted constant that reveals another key.
_CHECK = "key-check"
#: The name of the running time of all processes so far.
_RUNNING = "running-seconds"
#: Kinds of which only the last request of an agent counts.
_LAST_ONLY = frozenset({"facts"})


class SpoolFull(Exception):
    """The spool has its maximum of bytes."""


class SpooledRequest(msgspec.Struct, frozen=True):
    """A request as the agent sent it. ``target`` is the path with the query."""

    verb: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored request. ``agent`` is the digest of the agent's key."""

    seq: int
    agent: str
    size: int
    request: SpooledRequest


class Spool:
    """Stores requests. ``key`` is the relay's own; ``most`` the maximum of bytes. Raises Unusable for another key."""

    def __init__(self, database: Database, key: str, most: int, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics
        self._cipher = AESGCM(HKDF(SHA256(), 32, None, _PURPOSE).derive(key.encode()))
        self._most = most
        #: Number of entries by agent, in the order of each agent's first entry.
        self._counts: Counter[str] = Counter()
        self.size = 0
        #: The running time of earlier processes, in seconds, and the start of this one (time.monotonic).
        self._earlier = int(next(iter(database.read("SELECT value FROM properties WHERE name = ?", _RUNNING)), (0,))[0])
        self._started = time.monotonic()
        self.changed = asyncio.Event()
        self._check_key()
        for agent, count, size in database.read(
            "SELECT agent, count(*), sum(length(request)) FROM entries GROUP BY agent ORDER BY min(seq)"
        ):
            self._counts[agent] = count
            self.size += size
        if self._counts:
            self.changed.set()

    def __len__(self) -> int:
        """The number of entries."""
        return self._counts.total()

    def has(self, agent: str) -> bool:
        """Return whether requests of this agent wait, so that later ones must wait, too."""
        return agent in self._counts

    def agents(self) -> list[str]:
        """Return the agents with entries."""
        return list(self._counts)

    async def append(self, agent: str, kind: str, request: SpooledRequest) -> None:
        """Store a request durably. Raises SpoolFull."""
        blob = self._encrypt(msgspec.msgpack.encode(request))
        if self.size + len(blob) > self._most:
            self._metrics.refused_full.inc()
            raise SpoolFull
        stored_at = self._running_seconds()
        # Counted before the write, so that a later request of the agent does not overtake this one.
        self._add(agent, 1, len(blob))

        def do(connection: sqlite3.Connection) -> tuple[int, int]:
            replaced = [(0, 0)]
            if kind in _LAST_ONLY:
                where = "FROM entries WHERE agent = ? AND kind = ?"
                select = f"SELECT count(*), coalesce(sum(length(request)), 0) {where}"
                replaced = connection.execute(select, (agent, kind)).fetchall()
                connection.execute(f"DELETE {where}", (agent, kind))
            insert = "INSERT INTO entries (agent, kind, request, stored_at) VALUES (?, ?, ?, ?)"
            connection.execute(insert, (agent, kind, blob, stored_at))
            return replaced[0][0], replaced[0][1]

        try:
            count, size = await asyncio.shield(self._database.write(do))
        except sqlite3.Error:
            self._add(agent, -1, -len(blob))
            raise
        self._add(agent, -count, -size)
        self._metrics.spooled.inc()
        self.changed.set()

    async def first(self, agent: str) -> Entry | None:
        """Return the agent's oldest entry, or None."""
        query = "SELECT seq, request FROM entries WHERE agent = ? ORDER BY seq LIMIT 1"
        row = await self._database.write(lambda connection: connection.execute(query, (agent,)).fetchone())
        if row is None:
            return None
        request = msgspec.msgpack.decode(self._decrypt(row[1]), type=SpooledRequest)
        return Entry(row[0], agent, len(row[1]), request)

    async def remove(self, entry: Entry) -> None:
        """Delete an entry that the central Stoker has answered."""
        query = "DELETE FROM entries WHERE seq = ?"
        count = await self._database.write(lambda connection: connection.execute(query, (entry.seq,)).rowcount)
        if count:
            self._add(entry.agent, -1, -entry.size)

    async def expire(self, seconds: float) -> int:
        """Delete the entries that have waited longer, in running time of the relay. Return their number."""
        now = self._running_seconds()

        def do(connection: sqlite3.Connection) -> list[tuple[str, int, int]]:
            connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (_RUNNING, now))
            old = "FROM entries WHERE stored_at < ?"
            select = f"SELECT agent, count(*), sum(length(request)) {old} GROUP BY agent"
            expired = connection.execute(select, (now - seconds,)).fetchall()
            connection.execute(f"DELETE {old}", (now - seconds,))
            return expired

        expired = await self._database.write(do)
        for agent, count, size in expired:
            self._add(agent, -count, -size)
        return sum(count for _, count, _ in expired)

    def _running_seconds(self) -> int:
        return self._earlier + int(time.monotonic() - self._started)

    def _add(self, agent: str, count: int, size: int) -> None:
        self._counts[agent] += count
        self.size += size
        if not self._counts[agent]:
            del self._counts[agent]

    def _encrypt(self, content: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, content, None)

    def _decrypt(self, blob: bytes) -> bytes:
        return self._cipher.decrypt(blob[:_NONCE], blob[_NONCE:], None)

    def _check_key(self) -> None:
        rows = self._database.read("SELECT value FROM properties WHERE name = ?", _CHECK)
        is_empty = not self._database.read("SELECT 1 FROM entries LIMIT 1")
        try:
            if rows and self._decrypt(rows[0][0]):
                return
        except InvalidTag:
            if not is_empty:
                raise Unusable(
                    "the spool has requests that were stored with another key of this relay: start the relay with that"
                    " key until they are delivered, or choose another --state-dir"
                ) from None
        self._database.read("INSERT OR REPLACE INTO properties VALUES (?, ?)", _CHECK, self._encrypt(_PURPOSE))
