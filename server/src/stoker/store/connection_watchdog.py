"""
Connections to PostgreSQL that fail in time: TCP's own time limits, and a watchdog for statements without an answer.

TCP finds a machine that is gone, but no proxy or database that accepts a statement and never answers it. PostgreSQL
needs limits, too: the session of a lost connection would keep its locks for hours.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from stoker.background_thread import BackgroundThread

_log = structlog.get_logger("stoker.store")

#: With these, a connection whose other end disappeared fails within about ten seconds instead of hours.
TCP_LIMITS = {
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
        b"SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
        b" SET idle_in_transaction_session_timeout = '20s'",
    ),
    (120000, b"SET tcp_user_timeout = 10000"),
    (140000, b"SET client_connection_check_interval = '5s'"),
    (170000, b"SET transaction_timeout = '45s'"),
)
#: Seconds that a statement may take. Stoker divides long work into short transactions; migrations are not watched.
ANSWER_SECONDS = 30.0
_TICK = 1.0
#: Positions of last_data_sent and last_data_recv, in milliseconds before now, in the kernel's struct tcp_info.
_TCP_INFO = struct.Struct("44xI4xI")


def tcp_limits(conninfo: str) -> dict[str, Any]:
    """Return the connection options that the URL does not set itself. Raises psycopg.Error for an invalid URL."""
    own = conninfo_to_dict(conninfo)
    return {name: value for name, value in TCP_LIMITS.items() if name not in own}


def limit_session(connection: psycopg.Connection[Any]) -> None:
    """Let PostgreSQL end the session of a lost connection. Not for sessions that a connection pooler shares."""
    for version, statement in _SESSION_LIMITS:
        if connection.info.server_version >= version:
            connection.pgconn.exec_(statement)  # an operating system without such a limit refuses it


@dataclass(frozen=True, slots=True)
class _Watched:
    connection: weakref.ref[psycopg.Connection[Any]]
    #: A descriptor of its own, because that of the connection may be closed and reused at any time.
    socket: socket.socket
    seconds: float

    def is_stuck(self) -> bool:
        """
        Whether a statement was sent, and nothing was received or sent for the time limit.

        Raises OSError, and struct.error for a kernel without these figures.
        """
        connection = self.connection()
        if connection is None or connection.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return False
        figures = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        ages: tuple[int, int] = _TCP_INFO.unpack(figures)
        return min(ages) > self.seconds * 1000

    def is_closed(self) -> bool:
        connection = self.connection()
        return connection is None or connection.closed


class ConnectionWatchdog:
    """
    Ends connections whose statements are not answered in time. Their threads then get psycopg.OperationalError.

    One thread, which starts with the first connection, looks at the kernel's figures, so statements cost nothing.
    Connections through Unix sockets are not watched.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: list[_Watched] = []
        self._stopping = threading.Event()
        self._thread: BackgroundThread | None = None

    def watch(self, connection: psycopg.Connection[Any], seconds: float = 0.0) -> None:
        """Watch a connection until it is closed. ``seconds`` per statement; 0: ``ANSWER_SECONDS``."""
        own = socket.socket(fileno=os.dup(connection.fileno()))
        if own.family == socket.AF_UNIX:
            own.close()
            return
        with self._lock:
            self._watched.append(_Watched(weakref.ref(connection), own, seconds or ANSWER_SECONDS))
            if self._thread is None and not self._stopping.is_set():
                self._thread = BackgroundThread("stoker-database-watchdog", self._run)
                self._thread.start()

    def close(self) -> None:
        """Stop the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            for watched in self._watched:
                watched.socket.close()
            self._watched.clear()

    def _run(self) -> None:
        while not self._stopping.wait(_TICK):
            self._sweep()

    def _sweep(self) -> None:
        with self._lock:
            for watched in self._watched:
                try:
                    _check(watched)
                except Exception:
                    _log.exception("database.connection_not_watched")
                    watched.socket.close()
            self._watched = [watched for watched in self._watched if watched.socket.fileno() >= 0]


def _check(watched: _Watched) -> None:
    if watched.is_closed():
        watched.socket.close()
    elif watched.is_stuck():
        _log.error("database.no_answer", seconds=watched.seconds)
        with contextlib.suppress(OSError):
            watched.socket.shutdown(socket.SHUT_RDWR)
