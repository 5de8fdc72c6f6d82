"""Open a store: one URL in, two doors out. Reading never waits for a writer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import sqlalchemy as sa

from stoker.model.errors import Invalid
from stoker.store import postgresql, sqlite
from stoker.store.bell import Bell
from stoker.store.tx import Carry, Relabel, Tx

T = TypeVar("T")


class Store:
    """
    ``read()`` is a context manager that gives one snapshot; ``write(do)`` runs ``do(tx)`` in one transaction
    and returns its result once that is on disk. ``do`` may run again after a deadlock, so it must not act
    outside the database. An exception from ``do`` undoes everything it wrote.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.bell = Bell()
        self._ear: postgresql.Ear | None = None
        match sa.make_url(url).get_backend_name():
            case "sqlite":
                self.engine = sqlite.open_engine(url)
                self._writer: sqlite.GroupWriter | postgresql.Writer = sqlite.GroupWriter(self.engine, self.bell)
                self._reading = sqlite.reading
            case "postgresql":
                self.engine = postgresql.open_engine(url)
                self._writer = postgresql.Writer(self.engine, self.bell)
                self._reading = postgresql.reading
            case other:
                raise Invalid(f"cannot use a {other!r} database: give a sqlite:/// or postgresql:// URL")

    @property
    def dialect(self) -> str:
        return self.engine.dialect.name

    def read(self) -> AbstractContextManager[Tx]:
        return self._reading(self.engine)

    def write(self, do: Callable[[Tx], T]) -> T:
        return self._writer.write(do)

    def on_carried_change(self, carry: Carry) -> None:
        """Who is told, inside the transaction, that a document changed which a transport carries somewhere."""
        self._writer.carry = carry

    def on_labels_changed(self, relabel: Relabel) -> None:
        """Who is told, inside the transaction, that a server's labels changed, that it came with some or is gone."""
        self._writer.relabel = relabel

    def hear(self) -> None:
        """Hear what other processes commit (PostgreSQL; on SQLite there is only this process)."""
        if self.dialect == "postgresql" and self._ear is None:
            self._ear = postgresql.Ear(self.url, self.bell)

    def close(self) -> None:
        if self._ear is not None:
            self._ear.close()
        self._writer.close()
        self.engine.dispose()
