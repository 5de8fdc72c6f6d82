"""One transaction, as every function of the rooms above receives it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from stoker.store.bell import Bell, server_topic
from stoker.store.schema import events

_BUMP = sa.text(
    "INSERT INTO documents (server_id, revision) VALUES (:id, 1)"
    " ON CONFLICT (server_id) DO UPDATE SET revision = documents.revision + 1 RETURNING revision, channel"
)
_ADD_EVENTS = sa.insert(events)
_ALONE = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_NOTIFY = sa.text("SELECT pg_notify('stoker', :payload)")
#: PostgreSQL refuses payloads of 8000 bytes; a ring is at most some 80.
_RINGS_A_NOTIFY = 80

#: (the transaction, a server's id, the resource whose transport carries its document): that has changed.
Carry = Callable[["Tx", str, str], None]
#: A project's id, a server's labels before and after: none where there is no such server.
Relabelled = tuple[str, Mapping[str, str], Mapping[str, str]]
#: (the transaction, all that have other labels by its end)
Relabel = Callable[["Tx", Sequence[Relabelled]], None]


@cache
def _plain(statement: sa.ClauseElement, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """SQLite's text of a statement, and the order of its values."""
    compiled = statement.compile(dialect=sqlite.dialect(), column_keys=names)
    return str(compiled), tuple(cast(Any, compiled).positiontup or ())


class Tx:
    """
    Statements go through ``run``. What must happen once however often it was asked for (a server's new
    revision, rings) or is only ever appended (events) is gathered and written when the work is done.
    """

    def __init__(
        self,
        connection: sa.Connection,
        *,
        reading: bool = False,
        carry: Carry | None = None,
        relabel: Relabel | None = None,
    ) -> None:
        self.connection = connection
        #: What a reading transaction has read ahead, by kind and id: nothing changes under it. None in one that writes.
        self.seen: dict[tuple[str, str], Any] | None = {} if reading else None
        #: All that one transaction writes carries one time.
        self.now = datetime.now(UTC)
        driver = connection.connection.driver_connection
        self._driver = driver if isinstance(driver, sqlite3.Connection) else None
        self._carry = carry
        self._relabel = relabel
        self._relabelled: list[Relabelled] = []
        self._touched: set[str] = set()
        self._rings: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self._after: list[Callable[[], None]] = []

    def run(
        self, statement: sa.Executable, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> sa.CursorResult[Any]:
        result: sa.CursorResult[Any] = self.connection.execute(statement, values)
        return result

    def quick(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """
        The first row of the few statements that are run most, or None.

        SQLite's driver is spared SQLAlchemy's share (0.06 of 0.08 ms each), so columns come as they are stored.
        """
        driver = self._driver
        if driver is None:
            result = self.connection.execute(cast(sa.Executable, statement), values)
            return result.first() if result.returns_rows else None
        sql, names = _plain(statement, tuple(values))
        return driver.execute(sql, [values[name] for name in names]).fetchone()

    def alone(self, name: str) -> None:
        """Until this transaction ends, no other is let by here with that name. SQLite has one writer anyway."""
        if self.connection.dialect.name == "postgresql":
            self.run(_ALONE, {"name": name})

    def touch(self, server_id: str) -> None:
        """This server's document changed: give it a new revision and wake its agent."""
        self._touched.add(server_id)

    def forget(self, server_id: str) -> None:
        """This server is gone: there is no document to be told of."""
        self._touched.discard(server_id)

    def relabelled(self, project_id: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """A server of the project has other labels now: whoever chooses by them is told."""
        if before != after:
            self._relabelled.append((project_id, before, after))

    def ring(self, topic: str) -> None:
        """Wake those who wait for ``topic``, once this is committed."""
        self._rings[topic] = 0

    def event(self, row: dict[str, Any]) -> None:
        self._events.append(row)

    def after_commit(self, act: Callable[[], None]) -> None:
        """For what only this process cares about; anything that must survive is a job (``work.defer``)."""
        self._after.append(act)

    def flush(self) -> None:
        """Write what was gathered. Called by the doors, last thing inside the transaction."""
        if self._events:
            self.run(_ADD_EVENTS, self._events)
            self._events = []
        if self._relabel is not None and self._relabelled:
            self._relabel(self, self._relabelled)
        self._relabelled = []
        # In order, so that two transactions that touch the same servers never wait for each other in a circle.
        for server_id in sorted(self._touched):
            revision, channel = self.quick(_BUMP, {"id": server_id})
            self._rings[server_topic(server_id)] = revision
            if channel is not None and self._carry is not None:
                self._carry(self, server_id, channel)
        self._touched.clear()
        if self._rings and self.connection.dialect.name == "postgresql":
            self._notify()

    def committed(self, bell: Bell) -> None:
        """Called by the doors once the transaction is on disk."""
        for topic, number in self._rings.items():
            bell.ring(topic, number)
        for act in self._after:
            act()

    def _notify(self) -> None:
        rings = [f"{topic}={number}" for topic, number in self._rings.items()]
        for start in range(0, len(rings), _RINGS_A_NOTIFY):
            self.run(_NOTIFY, {"payload": " ".join(rings[start : start + _RINGS_A_NOTIFY])})
