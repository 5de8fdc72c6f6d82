"""Transactions: the object through which all queries of one transaction run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.late_bound import LateBound
from stoker.model.selectors import Selectable
from stoker.store import rows
from stoker.store.notifier import Notifier, server_topic
from stoker.store.schema import events
from stoker.store.secret_columns import SecretColumns
from stoker.store.statement_executor import StatementExecutor

_BUMP = sa.text(
    "INSERT INTO documents (server_id, revision) VALUES (:id, 1)"
    " ON CONFLICT (server_id) DO UPDATE SET revision = documents.revision + 1 RETURNING server_id, revision, channel"
)
#: The same for a JSON list of servers, in its order. "WHERE true": otherwise SQLite reads ON as part of a join.
_BUMP_ALL = {
    dialect: sa.text(
        "INSERT INTO documents (server_id, revision) SELECT value, 1 FROM "  # noqa: S608 — the sources are constants
        + source
        + " WHERE true ON CONFLICT (server_id) DO UPDATE SET revision = documents.revision + 1"
        " RETURNING server_id, revision, channel"
    )
    for dialect, source in (
        ("sqlite", "json_each(:ids)"),
        ("postgresql", "json_array_elements_text(CAST(:ids AS json)) AS value"),
    )
}
#: A document without deployments, of a server that Stoker does not know: deployments of REST clients may name any id.
_IS_UNUSED = sa.text(
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM servers WHERE id = :id)"
    " AND NOT EXISTS (SELECT 1 FROM deployments WHERE server_id = :id)"
)
_DROP = sa.text("DELETE FROM documents WHERE server_id = :id")
_ADD_EVENTS = sa.insert(events)
_SHARED_LOCK = sa.text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))")
_ADVISORY_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")

#: Seconds that a transaction may last if others wait for it and a later transaction can continue its work.
SHARE_SECONDS = 0.03
#: The engine's execution option with the encryption for columns with secrets.
ENCRYPTION = "stoker_encryption"
#: (project id, server before, server after). None: the server does not exist.
ServerChange = tuple[str, Selectable | None, Selectable | None]


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class TxCallbacks:
    """What a write transaction calls at its end. The default ignores the changes, as the ``stoker db`` commands do."""

    #: (transaction, server id, id of the resource whose transport publishes the server's document): the published
    #: document has changed.
    document_changed: Callable[[Tx, str, str], None] = _ignore
    #: (transaction, changes): labels or facts of servers have changed, or servers were added or deleted.
    servers_changed: Callable[[Tx, Sequence[ServerChange]], None] = _ignore


class Tx(StatementExecutor):
    """
    One transaction. ``store.read()`` and ``store.write()`` create it and pass it to all query functions::

        def rename(tx: Tx) -> None:
            tx.run(statement, {"id": id, "name": name})
            tx.bump_document(server_id)

        store.write(rename)

    The inherited methods execute statements. New revisions of documents, notifications and events are collected and
    written once, at the end of the transaction (``flush``).
    """

    def __init__(
        self,
        connection: sa.Connection,
        now: datetime,
        *,
        reading: bool = False,
        callbacks: LateBound[TxCallbacks] | None = None,
        is_contended: Callable[[], bool] | None = None,
    ) -> None:
        """
        Begin a transaction on ``connection``; only the store does this.

        ``now`` is the time of the store's clock. ``reading`` marks a read transaction. ``flush`` calls ``callbacks``;
        None in a read transaction. ``is_contended`` returns whether other writers wait for this transaction; None:
        other writers never wait.
        """
        super().__init__(connection)
        self._is_contended = is_contended
        self._begun = time.monotonic()
        #: Rows that a read transaction has loaded in advance, by kind and id; its snapshot does not change. None in a
        #: write transaction.
        self.prefetched: dict[tuple[str, str], Any] | None = {} if reading else None
        #: Rows, as stored, that a write transaction has read and locked in advance, by kind and id.
        self.preloaded: dict[tuple[str, ...], Any] = {}
        #: Data that higher layers keep during this transaction, by their own keys.
        self.notes: dict[str, Any] = {}
        #: The time of the transaction, which all its writes share.
        self.now = now
        #: The known secrets, which the transaction encrypts when it writes them and redacts in output.
        self.secrets = self.new_secrets()
        self._callbacks = callbacks
        self._server_changes: list[ServerChange] = []
        #: Whether the transaction applies a signal, whose duration is measured.
        self.is_signal = False
        self._bumped: set[str] = set()
        self._dropping: set[str] = set()
        #: Topics and numbers for the subscribers, notified after the commit.
        self.notifications: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self._after: list[Callable[[], None]] = []

    def new_secrets(self) -> SecretColumns:
        """
        Return the secrets of another part of this transaction, which knows none yet.

        A transaction for several requests sets ``secrets`` for each of them: what one request knows must not be
        redacted in the output of the others.
        """
        return SecretColumns(self.connection.get_execution_options().get(ENCRYPTION))

    def advisory_lock(self, name: str, *, is_shared: bool = False) -> None:
        """
        Lock a name until the transaction ends. On SQLite there is only one writer, so no lock is needed.

        ``is_shared``: other transactions may share the lock, too.
        """
        if self.connection.dialect.name == "postgresql":
            self.execute_fast(_SHARED_LOCK if is_shared else _ADVISORY_LOCK, {"name": name})

    @property
    def should_yield(self) -> bool:
        """
        Whether the transaction should leave remaining work to a later one: it has lasted ``SHARE_SECONDS``, and others
        wait.
        """
        contended = self._is_contended
        return contended is not None and time.monotonic() - self._begun > SHARE_SECONDS and contended()

    def bump_document(self, server_id: str) -> None:
        """
        Give the server's document a new revision at the end of the transaction, and wake its agent after the commit.
        """
        self._bumped.add(server_id)

    def bump_or_drop_document(self, server_id: str) -> None:
        """
        Do the same as ``bump_document`` after a deployment was deleted, but delete a document that is no longer needed.
        """
        self._bumped.add(server_id)
        self._dropping.add(server_id)

    def drop_document(self, server_id: str) -> None:
        """Cancel a requested new revision, because the server is deleted."""
        self._bumped.discard(server_id)

    def record_server_change(self, project_id: str, before: Selectable | None, after: Selectable | None) -> None:
        """
        Record a change of a server's labels or facts, its addition or its deletion. At the end of the transaction, the
        callback for changed servers receives it.
        """
        if before != after:
            self._server_changes.append((project_id, before, after))

    def notify(self, topic: str) -> None:
        """Notify the subscribers of ``topic``, in every process, after the commit."""
        self.notifications[topic] = 0

    def event(self, row: dict[str, Any]) -> None:
        """Append an event at the end of the transaction. ``row`` has the columns of the table ``events``."""
        self._events.append(row)

    def after_commit(self, act: Callable[[], None]) -> None:
        """
        Call ``act`` in this process after the commit.

        The call is lost if the process ends before. An effect that must happen is a job (``work.defer``).
        """
        self._after.append(act)

    def flush(self) -> None:
        """Write the collected changes, by ``put``. The store calls this at the end of the transaction."""
        for row in self._events:
            self.put(_ADD_EVENTS, row)
        self._events = []
        if self._server_changes and self._callbacks is not None:
            self._callbacks.get().servers_changed(self, self._server_changes)
        self._server_changes = []
        for server_id in sorted(self._bumped & self._dropping):
            if self.execute_fast(_IS_UNUSED, {"id": server_id}) is not None:
                self.execute_fast(_DROP, {"id": server_id})
                self.notifications[server_topic(server_id)] = 0
                self._bumped.discard(server_id)
        for server_id, revision, channel in self._bump():
            self.notifications[server_topic(server_id)] = revision
            if channel is not None and self._callbacks is not None:
                self._callbacks.get().document_changed(self, server_id, channel)
        self._bumped.clear()

    def _bump(self) -> Sequence[Any]:
        """Give documents new revisions; return their servers, revisions and channels."""
        # Sorted, so that two transactions that bump the same documents cannot deadlock.
        ids = sorted(self._bumped)
        if len(ids) < 2:
            return [self.execute_fast(_BUMP, {"id": id}) for id in ids]
        return self.fetch_all(_BUMP_ALL[self.connection.dialect.name], {"ids": rows.dump(ids)})

    def notify_committed(self, notifier: Notifier) -> None:
        """Notify subscribers and call the functions of ``after_commit``. The store calls this after the commit."""
        for topic, number in self.notifications.items():
            notifier.notify(topic, number)
        for act in self._after:
            act()


@contextmanager
def reading(connection: sa.Connection, now: datetime) -> Iterator[Tx]:
    """Yield a read transaction on ``connection``; only the store calls this."""
    tx = Tx(connection, now, reading=True)
    try:
        yield tx
    finally:
        # Prefetched rows refer to the transaction: otherwise they would wait for the garbage collector.
        if tx.prefetched is not None:
            tx.prefetched.clear()
        tx.notes.clear()
