"""Repositories: the statements that add, find, change and delete the rows of one dataclass, generated at import."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import sqlalchemy as sa

from stoker.model.errors import EntityNotFound
from stoker.store import rows, statements
from stoker.store.codec import Codec
from stoker.store.tx import Tx

T = TypeVar("T")


class _InProject(Protocol):
    @property
    def project_id(self) -> str: ...


P = TypeVar("P", bound=_InProject)


class Repository(Generic[T]):
    """
    The rows of ``table`` as objects of the dataclass ``model``::

        _CLAIMS = Repository(Claim, claims, key=("queue_id", "id"), fixed=("queue_id",))
        _EXPIRED = _CLAIMS.select(claims.c.expires_at <= sa.bindparam("now"))

        claim = _CLAIMS.find(tx, queue_id, id, for_update=True)
        expired = _CLAIMS.all(tx, _EXPIRED, {"now": now})

    ``key`` names the columns that identify a row, ``fixed`` those that ``save`` does not write. ``unmapped`` names the
    columns that the dataclass does not have (see ``Codec``).
    """

    def __init__(
        self,
        model: type[T],
        table: sa.Table,
        *,
        key: tuple[str, ...] = ("id",),
        fixed: Collection[str] = (),
        unmapped: Collection[str] = (),
    ) -> None:
        self.codec = codec = Codec(model, table, unmapped)
        self.columns, self.encode, self.decode = codec.columns, codec.encode, codec.decode
        self.fixed = (*key, *fixed)
        self._key = key
        self._insert = sa.insert(table)
        self._find = self.by(*key)
        changing = [name for name in codec.written if name not in self.fixed]
        self._update = statements.update(table, *changing, key=key)
        self._encode_changes = codec.encoder(
            {**{name: name for name in changing}, **{f"key_{name}": name for name in key if name in codec.fields}}
        )
        self._delete = statements.delete(table, *key)

    def select(self, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
        """Return the query for the rows that match the conditions, for use with ``first``, ``all`` and ``several``."""
        return sa.select(*self.columns).where(*conditions)

    def by(self, *names: str) -> sa.Select[Any]:
        """Return the query for the rows whose columns ``names`` equal the parameters of the same names."""
        return self.select(*statements.equal(self.codec.table, *names))

    def add(self, tx: Tx, new: T, *, encrypt: Collection[str] = (), **unmapped: Any) -> None:
        """
        Insert an object.

        ``encrypt`` names columns that are encrypted even if the transaction knows no secret in them. ``unmapped`` are
        the values of columns that the dataclass does not have, as stored.
        """
        values = _encrypt(tx, self.encode(new, tx.secrets), encrypt)
        if unmapped:
            values |= unmapped
        tx.execute_fast(self._insert, values)

    def put(self, tx: Tx, new: T) -> None:
        """Insert an object with the next other statement (``Tx.put``)."""
        tx.put(self._insert, self.encode(new, tx.secrets))

    def add_all(self, tx: Tx, new: Iterable[T]) -> None:
        """Insert objects."""
        tx.run_many(self._insert, [self.encode(item, tx.secrets) for item in new])

    def find(self, tx: Tx, *key: Any, for_update: bool = False) -> T | None:
        """Return the object with this key, or None; ``for_update`` locks its row."""
        return self.first(tx, self._find, dict(zip(self._key, key, strict=True)), for_update=for_update)

    def first(self, tx: Tx, query: sa.Select[Any], values: Mapping[str, Any], *, for_update: bool = False) -> T | None:
        """Return the object in the first row of a query made by ``select`` or ``by``, or None."""
        row = tx.execute_fast(_locking(query) if for_update else query, values)
        return None if row is None else self.decode(row, tx.secrets)

    def all(self, tx: Tx, query: sa.Select[Any], values: Mapping[str, Any], *, for_update: bool = False) -> list[T]:
        """Return the objects in all rows of a query made by ``select`` or ``by``."""
        decode, secrets = self.decode, tx.secrets
        return [decode(row, secrets) for row in tx.fetch_all(_locking(query) if for_update else query, values)]

    def several(self, tx: Tx, query: sa.Select[Any], ids: Iterable[str]) -> list[T]:
        """Return the objects in all rows of a query whose parameter ``ids`` is a list (``expanding``)."""
        return [
            self.decode(row, tx.secrets) for portion in rows.portions(ids) for row in tx.run(query, {"ids": portion})
        ]

    def save(self, tx: Tx, changed: T, *, encrypt: Collection[str] = ()) -> None:
        """Write all columns of an object except for the fixed ones. ``encrypt`` is as in ``add``."""
        tx.execute_fast(self._update, _encrypt(tx, self._encode_changes(changed, tx.secrets), encrypt))

    def put_changes(self, tx: Tx, changed: T) -> None:
        """Write the columns that ``save`` writes, with the next other statement (``Tx.put``)."""
        tx.put(self._update, self._encode_changes(changed, tx.secrets))

    def save_all(self, tx: Tx, changed: Iterable[T]) -> None:
        """Write all columns of objects except for the fixed ones."""
        tx.run_many(self._update, [self._encode_changes(item, tx.secrets) for item in changed])

    def delete(self, tx: Tx, *key: Any) -> None:
        """Delete the row with this key."""
        tx.execute_fast(self._delete, dict(zip(self._key, key, strict=True)))


def require(entity: P | None, noun: str, id: str, project_id: str | None = None) -> P:
    """
    Return an object that was found. ``project_id`` is the project that it must belong to; None: any project.

    Raises EntityNotFound, with ``noun`` and ``id``, for None and for an object of another project.
    """
    if entity is None or project_id not in (None, entity.project_id):
        raise EntityNotFound.of(noun, id)
    return entity


@cache
def _locking(query: sa.Select[Any]) -> sa.Select[Any]:
    return query.with_for_update()


def _encrypt(tx: Tx, values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    for name in names:
        values[name] = tx.secrets.encrypt(values[name], always=True)
    return values
