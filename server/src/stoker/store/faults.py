"""Errors of the databases: the same classes for both drivers, without the values of statements."""

from __future__ import annotations

import sqlite3

import psycopg
import structlog

from stoker.model.errors import Invalid

_log = structlog.get_logger("stoker.store")

#: PostgreSQL ended the session, because the transaction was idle, or took too long. psycopg has no OperationalError for
#: these, and the connection may not know yet that it is closed.
_ENDED = ("25P03", "25P04")


class DatabaseError(Exception):
    """
    An error that the database or its driver has reported. The transaction cannot continue.

    The text has the statement, but not the values: these include password hashes and scripts of users.
    """

    def __init__(self, error: Exception, statement: str = "") -> None:
        super().__init__(f"{error}\n[SQL: {statement}]" if statement else str(error))
        #: The driver's error.
        self.orig = error


class Failure(DatabaseError):
    """The database, the disk, the network or the machine failed, or a statement met a limit of the database."""


class ConnectionLost(Failure):
    """The connection broke. It cannot be used any more."""


class UniqueViolation(DatabaseError):
    """A constraint refuses a row, such as a unique index."""


class UnusableValue(DatabaseError):
    """A value that no column can hold: a number out of range, for example."""


#: Raised for a value that no column can hold, or no query compare: a number out of range, a text that is too long
#: (PostgreSQL), or contains NUL (PostgreSQL) or a lone surrogate.
UNUSABLE_VALUES = (UnusableValue, OverflowError, UnicodeEncodeError)

_CLASSES: tuple[tuple[type[DatabaseError], tuple[type[Exception], ...]], ...] = (
    (Failure, (sqlite3.OperationalError, psycopg.OperationalError)),
    (UniqueViolation, (sqlite3.IntegrityError, psycopg.IntegrityError)),
    (UnusableValue, (sqlite3.DataError, psycopg.DataError)),
)


def wrap(error: Exception, statement: str = "") -> DatabaseError:
    """Return the error for one of a driver."""
    for kind, causes in _CLASSES:
        if isinstance(error, causes):
            return kind(error, statement)
    return DatabaseError(error, statement)


def describe(error: Exception) -> str:
    """Return the first line of the driver's error."""
    cause = error.orig if isinstance(error, DatabaseError) else error
    return next(iter(str(cause).strip().splitlines()), type(cause).__name__)


def is_fault(error: BaseException) -> bool:
    """
    Return whether the database, its disk or its machine failed, not a statement. Errors of SQLite may be unwrapped.
    """
    cause = error.orig if isinstance(error, DatabaseError) else error
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)  # extended codes use the upper bits
        is_operational = isinstance(cause, sqlite3.OperationalError)
        return is_operational and code is not None and code & 0xFF != sqlite3.SQLITE_ERROR
    return isinstance(error, Failure)


def is_ended(error: BaseException) -> bool:
    """Return whether PostgreSQL ended the session because of a limit of its transactions."""
    return getattr(error, "sqlstate", None) in _ENDED


def unusable_value(error: BaseException) -> Invalid:
    """Return the error of the API for one of ``UNUSABLE_VALUES``, and log the driver's error with its traceback."""
    _log.warning("database.value_refused", exc_info=error)
    return Invalid("a value is out of range, too long or not valid text, so that the database cannot store it")
