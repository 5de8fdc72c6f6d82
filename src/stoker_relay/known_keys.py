"""The keys that the central Stoker has accepted, as digests: agents that the relay serves while Stoker is away."""

from __future__ import annotations

import asyncio
import hashlib

from stoker_relay.database import Database

_MOST = 200_000


def digest_of(key: str) -> str:
    """Return the digest by which the relay knows an agent. A key has 256 random bits, so a plain hash suffices."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class KnownKeys:
    """The digests, in memory and in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._digests = {row[0] for row in database.read("SELECT digest FROM known_keys")}
        self._tasks: set[asyncio.Task[None]] = set()

    def has(self, digest: str) -> bool:
        """Return whether the central Stoker accepted the key of this digest the last time."""
        return digest in self._digests

    def add(self, digest: str) -> None:
        """Note that the central Stoker accepts the key."""
        if digest not in self._digests and len(self._digests) < _MOST:
            self._digests.add(digest)
            self._write("INSERT OR IGNORE INTO known_keys VALUES (?)", digest)

    def remove(self, digest: str) -> None:
        """Note that the central Stoker refuses the key."""
        if digest in self._digests:
            self._digests.discard(digest)
            self._write("DELETE FROM known_keys WHERE digest = ?", digest)

    def _write(self, statement: str, digest: str) -> None:
        """Write in the background. A lost write costs one refusal, or one request, while Stoker is away."""

        async def write() -> None:
            await self._database.write(lambda connection: connection.execute(statement, (digest,)).rowcount)

        task = asyncio.get_running_loop().create_task(write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
