"""Transactions: the object through which all queries of one transaction run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from stoker.metrics import Metrics
from stoker.model.deployment import Cause, Owner, Settled
from stoker.model.errors import RequestLimitExceeded, StokerError, redact_error
from stoker.model.selectors import Selectable
from stoker.store import rows
from stoker.store import sql as sqls
from stoker.store.clock import Clock
from stoker.store.connection import Batch, Connection, DatabaseError
from stoker.store.encryption import Encryption
from stoker.store.notifier import Notifier, project_topic, report_topic, server_topic, stack_topic
from stoker.store.rows import SecretColumns
from stoker.store.sql import Statement, sql

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

T = TypeVar("T")
_SAVEPOINT, _ROLLBACK = sql("SAVEPOINT part"), sql("ROLLBACK TO SAVEPOINT part")
_RELEASE = sql("RELEASE SAVEPOINT part")
#: Rows in one statement at most.
_MOST_ROWS = 50
#: Rows that concurrent transactions may add at a time. A count that is further from a limit needs no lock.
_CONCURRENT = 500

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


@dataclass(frozen=True, slots=True)
class TxContext:
    """What all transactions of a store share."""

    clock: Clock
    encryption: Encryption
    notifier: Notifier
    metrics: Metrics
    #: What write transactions call at their end.
    callbacks: TxCallbacks


class Statements:
    """
    Executes the statements of one transaction: those that return nothing wait for the next round trip.

    A transaction inherits this class, because its methods run for every query.
    """

    #: Errors of the database, after which the transaction cannot continue.
    FAULTS = (DatabaseError,)

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: Statements that were not sent yet, in their order, each with the values of successive calls of ``put``.
        self.unsent: Batch = []
        #: What the transaction has read already, by kind and id, so that nothing is read twice: in a read transaction
        #: anything, in a write transaction rows that never change, and rows that were read in advance.
        self.cache: dict[tuple[str, ...], Any] = {}

    def put(self, statement: Statement, values: Mapping[str, Any]) -> None:
        """
        Write a row later: with the next other statement, or at the end of the transaction.

        On PostgreSQL, all of these rows are sent in one round trip, in the order of the calls, with the statement or
        the commit that follows. Parameters have the form that ``execute_fast`` expects, and nothing is returned.
        """
        if self.unsent and self.unsent[-1][0] is statement:
            self.unsent[-1][1].append(values)
        else:
            self.unsent.append((statement, [values]))

    def put_rows(self, table: str, values: Sequence[Mapping[str, Any]], end: str = "") -> None:
        """Insert rows later, as ``put`` does, many in one statement. ``end`` is what follows their values."""
        for first in range(0, len(values), _MOST_ROWS):
            portion = values[first : first + _MOST_ROWS]
            statement = sqls.insert_rows(table, tuple(portion[0]), len(portion), end)
            numbered = {f"{name}_{row}": item for row, names in enumerate(portion) for name, item in names.items()}
            self.put(statement, numbered)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """
        Undo the writes of the block if it raises. An error of the database is not undone: the transaction fails.

        The statements of the savepoint are sent with the next ones, so they cost no round trip.
        """
        self.put(_SAVEPOINT, {})
        begin = self.unsent[-1]
        try:
            yield
        except DatabaseError:
            raise
        except Exception:
            position = next((i for i, entry in enumerate(self.unsent) if entry is begin), None)
            del self.unsent[position or 0 :]
            self.cache.clear()  # rows may have been read after the writes
            if position is None:  # the savepoint was sent
                self.put(_ROLLBACK, {})
                self.put(_RELEASE, {})
            raise
        self.put(_RELEASE, {})

    def send(self) -> None:
        """Execute the statements of ``put``."""
        if self.unsent:
            self.connection.execute(self.unsent)

    def execute_fast(self, statement: Statement, values: Mapping[str, Any]) -> Any:
        """
        Execute a statement and return its first row, or None. ``values`` has a value for each of its parameters.

        The method calls the driver directly. Therefore columns have the form in which they are stored, and no parameter
        may be a list.
        """
        self.unsent.append((statement, [values]))
        return self.connection.execute(self.unsent).fetchone()

    def scalar(self, statement: Statement, values: Mapping[str, Any]) -> Any:
        """Execute a query as ``execute_fast`` does, and return the first value of its first row, or None."""
        row = self.execute_fast(statement, values)
        return None if row is None else row[0]

    def fetch_all(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Any]:
        """Execute a query as ``execute_fast`` does, and return all rows."""
        self.unsent.append((statement, [values]))
        return self.connection.execute(self.unsent).fetchall()

    def change(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Execute an UPDATE, a DELETE or an INSERT as ``execute_fast`` does, and return the number of its rows."""
        self.unsent.append((statement, [values]))
        return self.connection.execute(self.unsent).rowcount

    def run_many(self, statement: Statement, values: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement for each of the values, as ``execute_fast`` does."""
        if values:
            self.unsent.append((statement, [*values]))
            self.send()


class Tx(Statements):
    """
    One transaction. ``store.read()`` and ``store.write()`` create it and pass it to all query functions::

        def rename(tx: Tx) -> None:
            tx.execute_fast(_RENAME, {"id": id, "name": name})
            tx.bump_document(server_id)

        store.write(rename)

    The inherited methods execute statements. New revisions of documents, notifications and
    events are collected and written once, at the end of the transaction (``flush``).
    """

    def __init__(
        self,
        connection: Connection,
        context: TxContext,
        *,
        reading: bool = False,
        is_contended: Callable[[], bool] | None = None,
    ) -> None:
        """
        Begin a transaction on ``connection``; only the store does this.

        ``reading`` marks a read transaction. ``is_contended`` returns whether other writers wait for this transaction;
        None: other writers never wait.
        """
        super().__init__(connection)
        self._context = context
        self._is_contended = is_contended
        self._begun = time.monotonic()
        #: Whether this is a read transaction, whose snapshot does not change.
        self.is_reading = reading
        #: Data that higher layers keep during this transaction, by their own keys.
        self.notes: dict[str, Any] = {}
        #: The time of the transaction, which all its writes share.
        self.now = context.clock.now()
        #: The known secrets, which the transaction encrypts when it writes them and redacts in output.
        self.secrets = SecretColumns(context.encryption)
        self._server_changes: list[ServerChange] = []
        self._woken: dict[Owner, list[Wake]] = {}
        #: Whether the transaction applies a signal, whose duration is measured.
        self.is_signal = False
        #: The server whose own agent has reported what the transaction changes now, until its end.
        self.reporter: str | None = None
        #: Server id → whether its agent has to read the document again.
        self._bumped: dict[str, bool] = {}
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
        return SecretColumns(self._context.encryption)

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

    def bump_document(self, server_id: str, *, wakes: bool = True) -> None:
        """
        Give the server's document a new revision at the end of the transaction, and wake its agent after the commit,
        unless the agent has reported the change (``reporter``). ``wakes`` False: no agent need read it.
        """
        wakes = wakes and server_id != self.reporter
        self._bumped[server_id] = wakes or self._bumped.get(server_id, False)

    def bump_or_drop_document(self, server_id: str, *, wakes: bool = True) -> None:
        """
        Do the same as ``bump_document`` after a deployment was deleted, but delete a document that is no longer needed.
        """
        self.bump_document(server_id, wakes=wakes)
        self._dropping.add(server_id)

    def drop_document(self, server_id: str) -> None:
        """Cancel a requested new revision, because the server is deleted."""
        self._bumped.pop(server_id, None)

    def record_server_change(self, project_id: str, before: Selectable | None, after: Selectable | None) -> None:
        """
        Record a change of a server's labels or facts, its addition or its deletion. At the end of the transaction, the
        callback for changed servers receives it.
        """
        self.notify(project_topic(project_id, "servers"))
        if before != after:
            self._server_changes.append((project_id, before, after))

    def notify(self, topic: str) -> None:
        """Notify the subscribers of ``topic``, in every process, after the commit."""
        self.notifications[topic] = 0

    def event(self, row: dict[str, Any]) -> None:
        """Append an event at the end of the transaction. ``row`` has the columns of the table ``events``."""
        self._events.append(row)
        self.notify(stack_topic(row["stack_id"]))

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
        callbacks, self.reporter = self._context.callbacks, None
        while self._woken:
            owner = min(self._woken)
            woken = callbacks.resource_woken if owner.kind == "resource" else callbacks.trigger_woken
            woken(self, owner.id, self._woken.pop(owner))
        if self._events:
            self.put_rows("events", self._events)
            self._events = []
        if self._server_changes:
            callbacks.servers_changed(self, self._server_changes)
        self._server_changes = []
        for server_id in sorted(self._bumped.keys() & self._dropping):
            if self.execute_fast(_IS_UNUSED, {"id": server_id}) is not None:
                self.execute_fast(_DROP, {"id": server_id})
                self.notifications[server_topic(server_id)] = 0
                del self._bumped[server_id]
        for server_id, revision, channel in self._bump():
            topic = server_topic if self._bumped[server_id] else report_topic
            self.notifications[topic(server_id)] = revision
            if channel is not None:
                callbacks.document_changed(self, server_id, channel)
        self._bumped.clear()

    def _bump(self) -> Sequence[Any]:
        """Give documents new revisions; return their servers, revisions and channels."""
        # Sorted, so that two transactions that bump the same documents cannot deadlock.
        ids, now = sorted(self._bumped), rows.to_micros(self.now)
        if len(ids) == 1:
            return self.fetch_all(_BUMP, {"id": ids[0], "now": now})
        return () if not ids else self.fetch_all(_BUMP_ALL, {"ids": rows.dump(ids), "now": now})

    def notify_committed(self) -> None:
        """Notify subscribers and call the functions of ``after_commit``. The store calls this after the commit."""
        if self.notifications:
            self._context.notifier.notify(self.notifications)
        for act in self._after:
            try:
                act()
            except Exception:  # the transaction is stored, so its caller must not get an error
                _log.exception("after_commit.failed")


def run(tx: Tx, do: Callable[[Tx], T]) -> T:
    """Return the result of ``do(tx)`` after ``flush``, or raise its error with known secrets redacted."""
    try:
        result = do(tx)
    except StokerError as error:
        redact_error(error, tx.secrets.texts)
        raise
    tx.flush()
    return result


def check_limit(tx: Tx, noun: str, owner: str, limit: int, count: Callable[[], int], *, new: int = 1) -> None:
    """
    Check that ``owner``, a project, may have ``new`` more rows; the transaction must add them.

    ``noun`` names the rows in the error. ``limit`` -1: no limit. ``count`` returns the present number; it is called
    twice near the limit, because concurrent transactions must not exceed the limit together. Raises
    RequestLimitExceeded.
    """
    if limit < 0 or count() + new + _CONCURRENT <= limit:
        return
    tx.advisory_lock(f"limit {noun} {owner}")
    if count() + new > limit:
        raise RequestLimitExceeded(f"this project may have {limit} {noun} and has them: delete some")
