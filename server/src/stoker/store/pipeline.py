"""
Round trips to PostgreSQL in libpq's pipeline mode: BEGIN travels with the first statement, COMMIT with the last ones.

psycopg's own pipeline writes to the socket for each statement and waits for it. Here a batch is one write and, mostly,
one read: the creation of a deployment takes a quarter less CPU.

Connections have limits for the time that they may be lost. TCP finds a machine that is gone. PostgreSQL needs limits,
too: the session of a lost connection would keep its locks for hours. A batch waits for its answer for a limited time,
because a proxy or a database may accept a statement and never answer it.
"""

from __future__ import annotations

import contextlib
import re
import select
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.conninfo import conninfo_to_dict

_log = structlog.get_logger("stoker.store")

#: A statement with ``$1``, ``$2``… and the values of its parameters.
Query = tuple[bytes, Sequence[Any]]
#: The statement and the types of its values: PostgreSQL prepares it for these types.
_Key = tuple[bytes, tuple[int, ...]]

#: With these, a connection whose other end disappeared fails within about ten seconds instead of hours.
_TCP_LIMITS = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
#: Limits on PostgreSQL's side, with the versions that have them: TCP's, for transactions whose next statement was lost
#: on the way, for statements whose client is gone while they wait, and for incomplete pipelines.
_SESSION_LIMITS = (
    (
        100000,
        b"SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),"
        b" set_config('tcp_keepalives_count', '3', false),"
        b" set_config('idle_in_transaction_session_timeout', '20s', false)",
    ),
    (120000, b"SET tcp_user_timeout = 10000"),
    (140000, b"SET client_connection_check_interval = '5s'"),
    (170000, b"SET transaction_timeout = '45s'"),
)
#: A statement is prepared after so many executions. Of each connection, so many stay prepared: each takes memory of the
#: server.
PREPARED_AFTER = 5
MOST_PREPARED = 100
#: Seconds for which a batch waits while nothing is received or sent. Stoker divides long work into short transactions.
ANSWER_SECONDS = 30.0

#: What begins a transaction, by its isolation level.
DEFAULT, REPEATABLE_READ = b"BEGIN", b"BEGIN ISOLATION LEVEL REPEATABLE READ"
_COMMIT, _ROLLBACK = b"COMMIT", b"ROLLBACK"


class _Encoded(NamedTuple):
    """A query as libpq sends it."""

    key: _Key
    values: Sequence[Any]
    formats: Sequence[int]


class Pipeline:
    """
    The batches of one connection, on which psycopg begins no transactions (``autocommit``). Between batches, psycopg's
    own methods may be called; their time is not limited.

    A statement that is executed often is prepared. psycopg itself then prepares none: it would deallocate all of them
    after a rollback.
    """

    def __init__(self, connection: psycopg.Connection[Any], *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """``answer_seconds``: for so long a batch waits while nothing is received or sent."""
        connection.prepare_threshold = None
        self.answer_seconds = answer_seconds
        #: False: each transaction may get another session, as behind a connection pooler.
        self.prepares = True
        #: The connection, which the pipeline shares with psycopg.
        self.connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._readable = select.poll()
        self._readable.register(connection.fileno(), select.POLLIN)
        self._writable = select.poll()
        self._writable.register(connection.fileno(), select.POLLIN | select.POLLOUT)
        #: The isolation level of the next transaction.
        self.isolation = DEFAULT
        #: How often statements that are not prepared were executed, and the names of the prepared ones, in the order of
        #: the last use.
        self._uses: OrderedDict[_Key, int] = OrderedDict()
        self._names: OrderedDict[_Key, bytes] = OrderedDict()
        self._last_number = 0
        #: How many rows the last statement has changed or returned.
        self.rowcount = 0

    def run(self, queries: Sequence[Query], *, commits: bool = False) -> Sequence[tuple[Any, ...]]:
        """
        Execute queries in the connection's transaction, and return the rows of the last one.

        A new transaction begins if there is none. ``commits`` ends it after the queries. A query that fails ends the
        batch. Raises psycopg.Error; the connection is closed if its state is not known, as after a batch without an
        answer.
        """
        if not queries and not self.is_in_transaction:
            return ()
        results = self._round_trip([self._encode(*query) for query in queries], _COMMIT if commits else None)
        if not queries:
            return ()
        result = results[-2 if commits else -1]
        self.rowcount = result.command_tuples or 0
        if not result.nfields:
            return ()
        self._transformer.set_pgresult(result)
        rows: Sequence[tuple[Any, ...]] = self._transformer.load_rows(0, result.ntuples, tuple)
        return rows

    def rollback(self) -> None:
        """End the transaction, if one has begun, without its changes. Raises psycopg.Error as ``run``."""
        if self.is_in_transaction:
            self._round_trip((), _ROLLBACK)

    def _round_trip(self, queries: Sequence[_Encoded], end: bytes | None) -> Sequence[pq.abc.PGresult]:
        """Return the results of the statements of a batch, ``end`` included."""
        self._pgconn.enter_pipeline_mode()
        try:
            return self._receive(self._send(queries, end))
        except BaseException:
            if self._pgconn.pipeline_status != pq.PipelineStatus.OFF:
                self.connection.close()  # unread results would be those of the next batch
            raise

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        return self._pgconn.transaction_status != pq.TransactionStatus.IDLE

    def _encode(self, sql: bytes, values: Sequence[Any]) -> _Encoded:
        transformer = self._transformer
        buffers = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return _Encoded((sql, tuple(transformer.types or ())), buffers, transformer.formats or ())

    def _send(self, queries: Sequence[_Encoded], end: bytes | None) -> list[tuple[_Key, bytes] | None]:
        """Send a batch. Return what each of its results means: a statement was prepared under a name, or None."""
        pgconn = self._pgconn
        expected: list[tuple[_Key, bytes] | None] = []
        if not self.is_in_transaction:
            pgconn.send_query_params(self.isolation, None)
            expected.append(None)
        new: dict[_Key, bytes] = {}
        for key, values, formats in queries:
            name = new.get(key) or self._names.get(key)
            if name is None and self._should_prepare(key):
                name = new[key] = self._new_name()
                if self._send_eviction():
                    expected.append(None)
                pgconn.send_prepare(name, key[0], key[1])
                expected.append((key, name))
            if name is None:
                pgconn.send_query_params(key[0], values, param_types=key[1], param_formats=formats)
            else:
                pgconn.send_query_prepared(name, values, param_formats=formats)
                if key in self._names:
                    self._names.move_to_end(key)
            expected.append(None)
        if end is not None:
            pgconn.send_query_params(end, None)
            expected.append(None)
        pgconn.pipeline_sync()
        self._flush()
        return expected

    def _should_prepare(self, key: _Key) -> bool:
        if not self.prepares:
            return False
        uses = self._uses.pop(key, 0)
        if uses >= PREPARED_AFTER:
            return True
        self._uses[key] = uses + 1
        if len(self._uses) > MOST_PREPARED:
            self._uses.popitem(last=False)
        return False

    def _new_name(self) -> bytes:
        self._last_number += 1
        return b"stoker_%d" % self._last_number

    def _send_eviction(self) -> bool:
        """Let PostgreSQL forget the statement that was not used for longest, if too many are prepared."""
        if len(self._names) < MOST_PREPARED:
            return False
        _, name = self._names.popitem(last=False)
        self._pgconn.send_query_params(b"DEALLOCATE " + name, None)
        return True

    def _flush(self) -> None:
        while self._pgconn.flush():
            # PostgreSQL may be unable to read more before its results are read.
            self._wait(self._writable)
            self._pgconn.consume_input()

    def _wait(self, poll: select.poll) -> None:
        if not poll.poll(1000 * self.answer_seconds):
            _log.error("database.no_answer", seconds=self.answer_seconds)
            raise psycopg.OperationalError(f"PostgreSQL has not answered for {self.answer_seconds:g} seconds")

    def _receive(self, expected: Sequence[tuple[_Key, bytes] | None]) -> Sequence[pq.abc.PGresult]:
        """Read the results of a batch. Raises psycopg.Error for the first that failed."""
        results: list[pq.abc.PGresult] = []
        failed: pq.abc.PGresult | None = None
        for result, prepared in zip(self._results(), expected, strict=False):
            if result.status == pq.ExecStatus.FATAL_ERROR:
                failed = failed or result
            elif result.status != pq.ExecStatus.PIPELINE_ABORTED:
                results.append(result)
                if prepared is not None:
                    self._names[prepared[0]] = prepared[1]
        if failed is not None:
            raise psycopg.errors.error_from_result(failed)
        return results

    def _results(self) -> Iterator[pq.abc.PGresult]:
        """Yield one result for each statement of a batch. Raises psycopg.OperationalError for a lost connection."""
        pgconn = self._pgconn
        while True:
            while pgconn.is_busy():
                self._wait(self._readable)
                pgconn.consume_input()
            result = pgconn.get_result()
            if pgconn.status == pq.ConnStatus.BAD:
                raise psycopg.OperationalError(pgconn.get_error_message() or "the connection is lost")
            if result is None:
                continue  # the end of one statement's results
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                pgconn.exit_pipeline_mode()
                return
            yield result


def connect(url: str, **options: Any) -> psycopg.Connection[Any]:
    """
    Open a connection with TCP's time limits. It begins transactions only if told to. Raises psycopg.Error.

    ``options`` of libpq, and those of the URL, replace the limits.
    """
    info = conninfo(url)
    own = conninfo_to_dict(info)
    limits = {name: value for name, value in _TCP_LIMITS.items() if name not in own}
    return psycopg.connect(info, autocommit=True, **{**limits, **options})


def limit_session(pipeline: Pipeline) -> None:
    """Let PostgreSQL end the session of a lost connection. Not for sessions that a connection pooler shares."""
    for version, statement in _SESSION_LIMITS:
        if pipeline.connection.info.server_version >= version:
            with contextlib.suppress(psycopg.DatabaseError):  # an operating system may have no such limit
                pipeline.run([(statement, ())], commits=True)


def conninfo(url: str) -> str:
    """Return the URL as libpq expects it; SQLAlchemy's ``postgresql+psycopg://`` is accepted, too."""
    return re.sub(r"^postgresql\+\w+:", "postgresql:", url)
