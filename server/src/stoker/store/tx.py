"""Transactions: the object through which all queries of one transaction run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from stoker.model.selectors import Selectable
from stoker.model.wake import Cause, Owner, Settled
from stoker.store import rows
from stoker.store.connection import Connection
from stoker.store.encryption import Encryption
from stoker.store.faults import UNUSABLE_VALUES, unusable_value
from stoker.store.notifier import Notifier, server_topic
from stoker.store.secret_columns import SecretColumns
from stoker.store.sql import sql
from stoker.store.statement_executor import StatementExecutor

#: A revision is the time of its transaction in microseconds, so that none recurs after a restored backup: an agent that
#: knows a revision of the lost time would not receive another document with the same number.
_SET_REVISION = (
    " ON CONFLICT (server_id) DO UPDATE SET revision ="
    " CASE WHEN documents.revision < excluded.revision THEN excluded.revision ELSE documents.revision + 1 END"
    " RETURNING server_id, revision, channel"
)
_BUMP = sql("INSERT INTO documents (server_id, revision) VALUES (:id, :now)" + _SET_REVISION)
#: The same for a JSON list of servers, in its order. "WHERE true": otherwise SQLite reads ON as part of a join.
_BUMP_ALL = sql(
    "INSERT INTO documents (server_id, revision)"
    " SELECT value, CAST(:now AS bigint) FROM @each(ids) AS bumped WHERE true" + _SET_REVISION
)
#: A document without deployments, of a server that Stoker does not know: deployments of REST clients may name any id.
_IS_UNUSED = sql(
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM servers WHERE id = :id)"
    " AND NOT EXISTS (SELECT 1 FROM deployments WHERE server_id = :id)"
)
_DROP = sql("DELETE FROM documents WHERE server_id = :id")
_SHARED_LOCK = sql("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))")
_ADVISORY_LOCK = sql("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")

_log = structlog.get_logger("stoker.store")
#: Seconds that a transaction may last if others wait for it and a later transaction can continue its work.
SHARE_SECONDS = 0.03
#: (project id, server before, server after). None: the server does not exist.
ServerChange = tuple[str, Selectable | None, Selectable | None]
#: Why an owner is woken, with the secrets of the part of the transaction that woke it.
Wake = tuple[Cause, SecretColumns]
_SETTLED = Settled()


def _ignore(*_: object) -> None:
    pass


@dataclass(slots=True)
class TxCallbacks:
    """
    What a write transaction calls at its end. The default ignores the changes, as the ``stoker db`` commands do.

    The layers above a store are created after it, and then bind their own functions.
    """

    #: (transaction, server id, id of the resource whose transport publishes the server's document): the published
    #: document has changed.
    document_changed: Callable[[Tx, str, str], None] = _ignore
    #: (transaction, changes): labels or facts of servers have changed, or servers were added or deleted.
    servers_changed: Callable[[Tx, Sequence[ServerChange]], None] = _ignore
    #: (transaction, id of the resource or trigger, causes): the owner advances.
    resource_woken: Callable[[Tx, str, Sequence[Wake]], None] = _ignore
    trigger_woken: Callable[[Tx, str, Sequence[Wake]], None] = _ignore

    def bind(self, callbacks: TxCallbacks) -> None:
        """Call these functions from now on."""
        for name in self.__slots__:
            setattr(self, name, getattr(callbacks, name))


class Tx(StatementExecutor):
    """
    One transaction. ``store.read()`` and ``store.write()`` create it and pass it to all query functions::

        def rename(tx: Tx) -> None:
            tx.execute_fast(_RENAME, {"id": id, "name": name})
            tx.bump_document(server_id)

        store.write(rename)

    The inherited methods execute statements. New revisions of documents, notifications and events are collected and
    written once, at the end of the transaction (``flush``).
    """

    def __init__(
        self,
        connection: Connection,
        now: datetime,
        encryption: Encryption,
        *,
        reading: bool = False,
        callbacks: TxCallbacks | None = None,
        is_contended: Callable[[], bool] | None = None,
    ) -> None:
        """
        Begin a transaction on ``connection``; only the store does this.

        ``now`` is the time of the store's clock, ``encryption`` that of columns with secrets. ``reading`` marks a read
        transaction. ``flush`` calls ``callbacks``; None in a read transaction. ``is_contended`` returns
        whether other writers wait for this transaction; None: other writers never wait.
        """
        super().__init__(connection)
        self._encryption = encryption
        self._is_contended = is_contended
        self._begun = time.monotonic()
        #: Rows that a read transaction has loaded in advance, by kind and id; its snapshot does not change. None in a
        #: write transaction.
        self.prefetched: dict[tuple[str, str], Any] | None = {} if reading else None
        #: Rows of configs that the transaction has read, by id. Configs never change.
        self.configs: dict[str, Any] = {}
        #: Data that higher layers keep during this transaction, by their own keys.
        self.notes: dict[str, Any] = {}
        #: The time of the transaction, which all its writes share.
        self.now = now
        #: The known secrets, which the transaction encrypts when it writes them and redacts in output.
        self.secrets = self.new_secrets()
        self._callbacks = callbacks
        self._server_changes: list[ServerChange] = []
        self._woken: dict[Owner, list[Wake]] = {}
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
        return SecretColumns(self._encryption)

    def advisory_lock(self, name: str, *, is_shared: bool = False) -> None:
        """
        Lock a name until the transaction ends. On SQLite there is only one writer, so no lock is needed.

        ``is_shared``: other transactions may share the lock, too.
        """
        if self.connection.dialect == "postgresql":
            self.execute_fast(_SHARED_LOCK if is_shared else _ADVISORY_LOCK, {"name": name})

    @property
    def should_yield(self) -> bool:
        """
        Whether the transaction should leave remaining work to a later one: it has lasted ``SHARE_SECONDS``, and others
        wait.
        """
        contended = self._is_contended
        return contended is not None and time.monotonic() - self._begun > SHARE_SECONDS and contended()

    def wake(self, owner: Owner | None, cause: Cause = _SETTLED) -> None:
        """Advance a resource or a trigger at the end of the transaction. None, a client, needs nothing."""
        if owner is not None:
            self._woken.setdefault(owner, []).append((cause, self.secrets))

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
        """
        Advance the woken owners, and write the collected changes, by ``put``.

        The store calls this at the end of the transaction. An owner may wake others, as a nested stack does its parent.
        """
        while self._woken and self._callbacks is not None:
            owner, callbacks = min(self._woken), self._callbacks
            woken = callbacks.resource_woken if owner.kind == "resource" else callbacks.trigger_woken
            woken(self, owner.id, self._woken.pop(owner))
        self.put_rows("events", self._events)
        self._events = []
        if self._server_changes and self._callbacks is not None:
            self._callbacks.servers_changed(self, self._server_changes)
        self._server_changes = []
        for server_id in sorted(self._bumped & self._dropping):
            if self.execute_fast(_IS_UNUSED, {"id": server_id}) is not None:
                self.execute_fast(_DROP, {"id": server_id})
                self.notifications[server_topic(server_id)] = 0
                self._bumped.discard(server_id)
        for server_id, revision, channel in self._bump():
            self.notifications[server_topic(server_id)] = revision
            if channel is not None and self._callbacks is not None:
                self._callbacks.document_changed(self, server_id, channel)
        self._bumped.clear()

    def _bump(self) -> Sequence[Any]:
        """Give documents new revisions; return their servers, revisions and channels."""
        # Sorted, so that two transactions that bump the same documents cannot deadlock.
        ids, now = sorted(self._bumped), rows.to_micros(self.now)
        if len(ids) < 2:
            return [self.execute_fast(_BUMP, {"id": id, "now": now}) for id in ids]
        return self.fetch_all(_BUMP_ALL, {"ids": rows.dump(ids), "now": now})

    def notify_committed(self, notifier: Notifier) -> None:
        """Notify subscribers and call the functions of ``after_commit``. The store calls this after the commit."""
        for topic, number in self.notifications.items():
            notifier.notify(topic, number)
        for act in self._after:
            try:
                act()
            except Exception:  # the transaction is stored, so its caller must not get an error
                _log.exception("after_commit.failed")


@contextmanager
def reading(connection: Connection, now: datetime, encryption: Encryption) -> Iterator[Tx]:
    """Yield a read transaction on ``connection``; only the store calls this. Raises Invalid for unusable values."""
    tx = Tx(connection, now, encryption, reading=True)
    try:
        yield tx
    except UNUSABLE_VALUES as error:
        raise unusable_value(error) from error
    finally:
        # Prefetched rows refer to the transaction: otherwise they would wait for the garbage collector.
        if tx.prefetched is not None:
            tx.prefetched.clear()
        tx.configs.clear()
        tx.notes.clear()
