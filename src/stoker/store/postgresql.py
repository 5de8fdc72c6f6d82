"""PostgreSQL's doors, and the ear that hears other processes' rings."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
import sqlalchemy as sa

from stoker.model.errors import Unavailable
from stoker.store.bell import Bell
from stoker.store.tx import Carry, Relabel, Tx

T = TypeVar("T")

#: Deadlock, serialization failure: doing the same again is the remedy PostgreSQL itself names.
_AGAIN = ("40001", "40P01")
_TRIES = 8


def open_engine(url: str) -> sa.Engine:
    # Parameters are passwords' hashes and users' scripts: nothing for an error's text.
    return sa.create_engine(driver_url(url), pool_size=8, max_overflow=32, pool_pre_ping=True, hide_parameters=True)


def driver_url(url: str) -> sa.URL:
    """``postgresql://`` as people write it means psycopg 3 here."""
    return sa.make_url(url).set(drivername="postgresql+psycopg")


@contextmanager
def reading(engine: sa.Engine) -> Iterator[Tx]:
    try:
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            yield Tx(connection, reading=True)
    except sa.exc.OperationalError as error:
        raise Unavailable(f"cannot read from the database: {error.orig}") from error


class Writer:
    def __init__(self, engine: sa.Engine, bell: Bell) -> None:
        self._engine = engine
        self._bell = bell
        self.carry: Carry | None = None
        self.relabel: Relabel | None = None

    def write(self, do: Callable[[Tx], T]) -> T:
        for attempt in range(_TRIES):
            try:
                return self._once(do)
            except sa.exc.OperationalError as error:
                if getattr(error.orig, "sqlstate", None) not in _AGAIN or attempt == _TRIES - 1:
                    raise Unavailable(f"cannot write to the database: {error.orig}") from error
                time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 — only spreads the tries
        raise AssertionError("unreachable")

    def close(self) -> None:
        pass

    def _once(self, do: Callable[[Tx], T]) -> T:
        with self._engine.begin() as connection:
            tx = Tx(connection, carry=self.carry, relabel=self.relabel)
            result = do(tx)
            tx.flush()
        tx.committed(self._bell)
        return result


class Ear:
    """Listens on its own connection and rings the bell for what other processes committed."""

    def __init__(self, url: str, bell: Bell) -> None:
        self._conninfo = driver_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._bell = bell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stoker-ear", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except psycopg.Error:
                self._stop.wait(0.5)

    def _listen(self) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            connection.execute("LISTEN stoker")
            # Rings were lost while nobody listened: everything cached may be old.
            self._bell.ring("*", 0)
            while not self._stop.is_set():
                for notice in connection.notifies(timeout=0.5):
                    for ring in notice.payload.split():
                        topic, _, number = ring.rpartition("=")
                        self._bell.ring(topic, int(number))
