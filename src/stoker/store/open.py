"""The store: opens a database by its URL and provides read and write transactions. Reading never waits for a writer."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import sqlalchemy as sa

from stoker.late_bound import LateBound
from stoker.metrics import Metrics
from stoker.model.errors import Invalid, StokerError, Unavailable, redact_error
from stoker.store import postgresql, site_properties, sqlite
from stoker.store.clock import Clock
from stoker.store.connection_watchdog import ConnectionWatchdog
from stoker.store.encryption import Encryption, KeySource, without_keys
from stoker.store.notifier import Notifier
from stoker.store.notifier_engines import InProcess, NotifierEngine, PostgresqlEngine
from stoker.store.probe import Probe
from stoker.store.tx import ENCRYPTION, Tx, TxCallbacks

#: Name of the site's property with the NATS subject of its notifications.
_SUBJECT = "nats_subject"
T = TypeVar("T")

#: The default number of connections of one process to PostgreSQL.
CONNECTIONS = 10


class Store:
    """
    A database with its transactions, its notifier and its encryption::

        with store.read() as tx:
            config = configs.get(tx, id, project_id)
        store.write(lambda tx: configs.delete(tx, id))

    ``read()`` returns a context manager with one snapshot. ``write(do)`` runs ``do(tx)`` in one transaction and returns
    its result after the commit is on disk. ``do`` may run again, after a deadlock for example, so it must have no
    effect outside the database. An exception from ``do`` rolls the transaction back.
    """

    def __init__(
        self,
        url: str,
        connections: int = CONNECTIONS,
        *,
        keys: KeySource = without_keys,
        nats_url: str = "",
        direct_url: str = "",
    ) -> None:
        """
        Open the database at ``url``: ``sqlite:///…`` or ``postgresql://…``.

        ``connections`` is the total number of connections of this process, including those of jobs (PostgreSQL only).
        ``keys`` returns the keys for columns with secrets. ``nats_url`` names a NATS server that carries notifications
        between processes (PostgreSQL only). ``direct_url`` leads to the same PostgreSQL without a connection pooler,
        for work that needs a session of its own. Raises Invalid for the URL of any other database.
        """
        self.url = url
        self.direct_url = direct_url or url
        self.encryption = Encryption(keys)
        self.notifier = Notifier()
        self.metrics = Metrics()
        #: The time that all processes of the site share.
        self.clock = Clock()
        #: What transactions call at their end; the app factory binds it.
        self.callbacks = LateBound("callbacks of the store", TxCallbacks())
        self.notifications: NotifierEngine = InProcess()
        self._watchdog = ConnectionWatchdog()
        match sa.make_url(url).get_backend_name():
            case "sqlite":
                self.engine = self._with_keys(sqlite.open_engine(url))
                self._writer: sqlite.GroupWriter | postgresql.Writer
                self._writer = sqlite.GroupWriter(self.engine, self.notifier, self.callbacks, self.metrics, self.clock)
                self._reading = sqlite.read_transaction
            case "postgresql":
                pooled = connections - postgresql.FIXED_CONNECTIONS
                self.engine = self._with_keys(postgresql.open_engine(url, pooled, self._watchdog, self.clock))
                self.notifications = self._create_notifications(nats_url)
                self._writer = postgresql.Writer(
                    self.engine, self.notifier, self.notifications, self.callbacks, self.metrics, self.clock
                )
                self._reading = postgresql.read_transaction
            case other:
                raise Invalid(f"cannot use a {other!r} database: give a sqlite:/// or postgresql:// URL")
        #: Checks for health probes whether the database responds, and corrects the clock.
        self.probe = Probe(self._open_probe, self.clock)

    def _open_probe(self) -> sa.Engine:
        if self.dialect == "sqlite":
            return sqlite.open_engine(self.url, 1, 0)
        return postgresql.open_engine(self.url, 1, self._watchdog, self.clock)

    def _create_notifications(self, nats_url: str) -> NotifierEngine:
        conninfo = postgresql.conninfo(self.direct_url)
        by_postgresql = PostgresqlEngine(conninfo, self.notifier, self.metrics, self._watchdog)
        if not nats_url:
            return by_postgresql
        from stoker.store.nats_notifications import NatsEngine  # imported late, because few sites use it

        return NatsEngine(nats_url, self._find_subject, self.notifier, self.metrics, by_postgresql)

    def _find_subject(self) -> str:
        """Return the NATS subject of the site, which the first process chooses: sites may share one NATS."""
        with self.read() as tx:
            subject = site_properties.get(tx, _SUBJECT)
        return subject or self.write(lambda tx: site_properties.add(tx, _SUBJECT, f"stoker.{secrets.token_hex(16)}"))

    def _with_keys(self, engine: sa.Engine) -> sa.Engine:
        """Attach the encryption to the engine, so that every transaction finds it by its connection."""
        engine.update_execution_options(**{ENCRYPTION: self.encryption})
        return engine

    @property
    def dialect(self) -> str:
        """The name of the database: ``sqlite`` or ``postgresql``."""
        return self.engine.dialect.name

    def read(self) -> AbstractContextManager[Tx]:
        """Open a read transaction. Raises Unavailable if the database does not respond."""
        return self._reading(self.engine, self.clock)

    def write(self, do: Callable[[Tx], T], *, background: bool = False, durable: bool = True) -> T:
        """
        Run ``do`` in a write transaction and return its result after the commit.

        ``background`` marks a part of a long operation: on SQLite, which has one writer, other transactions go first.
        Without ``durable``, the commit does not wait for the disk: it survives the end of this process, but a crash of
        the machine or of PostgreSQL may undo it.
        Raises Unavailable if the database does not respond, and any exception of ``do``, with secrets redacted.
        """

        begun, is_signal = time.monotonic(), False

        def guarded(tx: Tx) -> T:
            nonlocal is_signal
            try:
                return do(tx)
            except StokerError as error:
                redact_error(error, tx.secrets.texts)
                raise
            finally:
                is_signal = tx.is_signal

        result = self._writer.write(guarded, background=background, durable=durable)
        seconds = time.monotonic() - begun
        self.metrics.write_seconds.observe(seconds)
        if is_signal:
            self.metrics.signal_seconds.observe(seconds)
        return result

    def start_listener(self) -> None:
        """
        Notify this process's subscribers of changes that other processes commit.

        Waits, for a few seconds at most, until other processes know of this one (see ``notifications``). On SQLite
        there is only one process, so the method does nothing.
        """
        self.notifications.start()

    def check_notifications(self) -> None:
        """Raise Unavailable if notifications are currently not sent or not received."""
        if problems := self.notifications.check():
            raise Unavailable("; ".join(problems))

    def notifier_problems(self) -> dict[str, str | None]:
        """Return the current problem of each part of the notifier; None: the part works."""
        return self.notifications.problems()

    def count_connections(self) -> tuple[int, int]:
        """Return how many connections transactions use now, and how many this process may open for them."""
        pool = self.engine.pool
        assert isinstance(pool, sa.QueuePool)
        return pool.checkedout(), pool.size() + max(0, pool._max_overflow)

    @contextmanager
    def session_engine(self) -> Iterator[sa.Engine]:
        """Yield an engine for work that needs a session of its own, such as a migration, and may take any time."""
        if self.dialect == "sqlite":
            yield self.engine
            return
        with postgresql.session_engine(self.direct_url) as engine:
            yield self._with_keys(engine)

    def close(self) -> None:
        """Stop the threads and close all connections."""
        self._writer.close()
        self.notifications.close()
        self.probe.close()
        self.engine.dispose()
        self._watchdog.close()
