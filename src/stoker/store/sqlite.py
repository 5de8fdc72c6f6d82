"""
SQLite's doors: any number of readers, one writer that commits in groups.

A group is everything that waits at the moment the writer becomes free: each piece of work in a savepoint
of its own, one commit (one fsync) for all, and nobody is answered before it. Measured with 32 waiting:
six times the throughput of a commit each.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa

from stoker.model.errors import Invalid, Unavailable
from stoker.store.bell import Bell
from stoker.store.tx import Carry, Relabel, Tx

T = TypeVar("T")


def open_engine(url: str) -> sa.Engine:
    """Raises Invalid for a database in memory: its connections would not see the same one."""
    if sa.make_url(url).database in (None, "", ":memory:"):
        raise Invalid("cannot use a database in memory: give sqlite:/// with the path of a file")
    # Parameters are passwords' hashes and users' scripts: nothing for an error's text.
    engine = sa.create_engine(
        url, connect_args={"check_same_thread": False}, pool_size=8, max_overflow=56, hide_parameters=True
    )
    sa.event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, where it is needed
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # NORMAL may lose acknowledged signals with the power
    connection.execute("PRAGMA busy_timeout = 30000")
    connection.execute("PRAGMA cache_size = -16000")


@contextmanager
def reading(engine: sa.Engine) -> Iterator[Tx]:
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")  # one snapshot for all that is read
            yield Tx(connection, reading=True)
    except sa.exc.OperationalError as error:
        if _is_fault(error):
            raise Unavailable(f"cannot read from the database: {error.orig}") from error
        raise


def _is_fault(error: BaseException) -> bool:
    """Of the disk, the file or the machine, rather than of a statement; a longer code says more in its upper bits."""
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None)
    return isinstance(error, sa.exc.OperationalError | sqlite3.OperationalError) and (
        code is not None and code & 0xFF != sqlite3.SQLITE_ERROR
    )


class _Work:
    """One caller's piece of a group: its function, then its result or its error."""

    def __init__(self, do: Callable[[Tx], Any]) -> None:
        self.do = do
        self.tx: Tx | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class GroupWriter:
    def __init__(self, engine: sa.Engine, bell: Bell) -> None:
        self._bell = bell
        self.carry: Carry | None = None
        self.relabel: Relabel | None = None
        self._connection = engine.connect()
        raw = self._connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        self._raw = raw
        self._turn = threading.Lock()
        self._waiting: deque[_Work] = deque()
        self._leader: int | None = None

    def write(self, do: Callable[[Tx], T]) -> T:
        if self._leader == threading.get_ident():
            raise RuntimeError("a write inside a write: pass the transaction on instead")
        work = _Work(do)
        self._waiting.append(work)
        with self._turn:  # whoever gets the turn commits for all who wait
            if not work.done:
                self._lead()
        result: T = work.outcome()
        # In every caller's own thread and after its turn: what is called may write, or fail, without harm to others.
        assert work.tx is not None
        work.tx.committed(self._bell)
        return result

    def close(self) -> None:
        with self._turn:
            self._connection.close()

    def _lead(self) -> None:
        group = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._leader = threading.get_ident()
        try:
            self._commit(group)
        except BaseException as error:
            self._abandon(group, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._leader = None
            for work in group:
                work.done = True

    def _commit(self, group: list[_Work]) -> None:
        self._connection.begin()  # said, as SQLAlchemy commits nothing that began behind its back
        self._raw.execute("BEGIN IMMEDIATE")
        if len(group) == 1:  # a savepoint would be for nobody else
            self._do(group[0], "ROLLBACK")
        else:
            for work in group:
                self._raw.execute("SAVEPOINT work")
                self._do(work, "ROLLBACK TO work")
                self._raw.execute("RELEASE work")
        if self._raw.in_transaction:
            self._raw.execute("COMMIT")
        self._connection.commit()  # SQLAlchemy's idea of it

    def _do(self, work: _Work, undo: str) -> None:
        try:
            work.tx = Tx(self._connection, carry=self.carry, relabel=self.relabel)
            work.result = work.do(work.tx)
            work.tx.flush()
        except BaseException as error:
            work.error = _unavailable(error) if _is_fault(error) else error
            if not self._raw.in_transaction:
                raise  # SQLite gave the whole transaction up (a full disk, say): nobody's work stands
            self._raw.execute(undo)

    def _abandon(self, group: list[_Work], error: BaseException) -> None:
        for work in group:
            work.error = work.error or _unavailable(error)
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")
        self._connection.rollback()  # SQLAlchemy's idea of it


def _unavailable(error: BaseException) -> Unavailable:
    made = Unavailable(f"cannot write to the database: {getattr(error, 'orig', None) or error}")
    made.__cause__ = error
    return made
