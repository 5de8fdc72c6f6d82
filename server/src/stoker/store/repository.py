"""Repositories: the statements that add, find, change and delete the rows of one struct, generated at import."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from stoker.model.errors import EntityNotFound
from stoker.store import rows
from stoker.store import sql as sqls
from stoker.store.codec import Codec, Encoder
from stoker.store.sql import Statement, sql
from stoker.store.tx import Tx

T = TypeVar("T", bound=Struct)


class _InProject(Protocol):
    @property
    def project_id(self) -> str: ...


P = TypeVar("P", bound=_InProject)


class Repository(Generic[T]):
    """
    The rows of ``table`` as objects of the struct ``model``::

        _CLAIMS = Repository(Claim, "claims", key=("queue_id", "id"), fixed=("queue_id",))
        _EXPIRED = _CLAIMS.select("expires_at <= :now")

        claim = _CLAIMS.find(tx, queue_id, id, for_update=True)
        expired = _CLAIMS.all(tx, _EXPIRED, {"now": now})

    A query that joins begins with ``columns_sql``: ``sql(f"SELECT {_CLAIMS.columns_sql('c')} FROM claims c JOIN …")``.

    ``key`` names the columns that identify a row, ``fixed`` those that ``save`` does not write.
    """

    def __init__(
        self,
        model: type[T],
        table: str,
        *,
        key: tuple[str, ...] = ("id",),
        fixed: Collection[str] = (),
    ) -> None:
        #: The name of the table.
        self.table = table
        self.codec = codec = Codec(model, table)
        self.encode, self.decode = codec.encode, codec.decode
        self.fixed = (*key, *fixed)
        self._key = key
        self._find = self.select(sqls.equal(*key))
        changing = [name for name in codec.written if name not in self.fixed]
        self._update = sqls.update(self.table, *changing, key=key)
        self._encode_changes = codec.encoder(
            {**{name: name for name in changing}, **{f"key_{name}": name for name in key if name in codec.fields}}
        )
        replaced = ", ".join(f"{sqls.quote(name)} = excluded.{sqls.quote(name)}" for name in changing)
        self._replace = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {replaced}"
        self._delete = sqls.delete(self.table, *key)
        #: The statements of ``update`` and their encoders, by the names of the columns.
        self._updates: dict[tuple[str, ...], tuple[Statement, Encoder[Any]]] = {}

    def columns_sql(self, alias: str = "") -> str:
        """Return the columns that ``decode`` expects at the beginning of a row. ``alias`` is the table's in a query."""
        return ", ".join(f"{alias or self.table}.{sqls.quote(name)}" for name in self.codec.fields)

    def select(self, condition: str) -> Statement:
        """
        Return the query for the rows that match a condition, for use with ``first``, ``all`` and ``several``.

        ``condition`` is what follows WHERE; it may end with ORDER BY and LIMIT.
        """
        return sql(f"SELECT {self.columns_sql()} FROM {self.table} WHERE {condition}")

    def by(self, *names: str) -> Statement:
        """Return the query for the rows whose columns ``names`` equal the parameters of the same names."""
        return self.select(sqls.equal(*names))

    def add(
        self, tx: Tx, new: T, *, encrypt: Collection[str] = (), unless_exists: bool = False, **columns: Any
    ) -> bool:
        """
        Insert an object. With ``unless_exists``, return False instead if a unique index has its values already.

        ``encrypt`` names columns that are encrypted even if the transaction knows no secret in them. ``columns`` are
        the values of other columns, as stored.
        """
        values = _encrypt(tx, self.encode(new, tx.secrets), encrypt) | columns
        inserted = tx.execute_fast(_insert(self.table, tuple(values), unless_exists), values)
        return not unless_exists or inserted is not None

    def put(self, tx: Tx, new: T, **columns: Any) -> None:
        """Insert an object with the next other statement (``Tx.put``). ``columns`` are as in ``add``."""
        values = self.encode(new, tx.secrets) | columns
        tx.put(_insert(self.table, tuple(values)), values)

    def add_all(self, tx: Tx, new: Iterable[T]) -> None:
        """Insert objects."""
        tx.run_many(_insert(self.table, self.codec.written), [self.encode(item, tx.secrets) for item in new])

    def find(self, tx: Tx, *key: Any, for_update: bool = False) -> T | None:
        """Return the object with this key, or None; ``for_update`` locks its row."""
        return self.first(tx, self._find, dict(zip(self._key, key, strict=True)), for_update=for_update)

    def first(self, tx: Tx, query: Statement, values: Mapping[str, Any], *, for_update: bool = False) -> T | None:
        """Return the object in the first row of a query made by ``select`` or ``by``, or None."""
        row = tx.execute_fast(query.for_update if for_update else query, values)
        return None if row is None else self.decode(row, tx.secrets)

    def all(self, tx: Tx, query: Statement, values: Mapping[str, Any], *, for_update: bool = False) -> list[T]:
        """Return the objects in all rows of a query made by ``select`` or ``by``."""
        decode, secrets = self.decode, tx.secrets
        return [decode(row, secrets) for row in tx.fetch_all(query.for_update if for_update else query, values)]

    def several(self, tx: Tx, query: Statement, ids: Iterable[str]) -> list[T]:
        """Return the objects in all rows of a query whose parameter ``ids`` is a list (``@in(ids)``)."""
        listed = list(ids)
        return self.all(tx, query, {"ids": rows.dump(listed)}) if listed else []

    def save(self, tx: Tx, changed: T, *, encrypt: Collection[str] = (), later: bool = False) -> None:
        """
        Write all columns of an object except for the fixed ones. ``encrypt`` is as in ``add``.

        ``later``: with the next other statement (``Tx.put``).
        """
        write = tx.put if later else tx.execute_fast
        write(self._update, _encrypt(tx, self._encode_changes(changed, tx.secrets), encrypt))

    def update(self, tx: Tx, *key: Any, **changes: Any) -> None:
        """Write some columns of the row with this key. ``changes`` are values of the struct's fields."""
        names = tuple(changes)
        if names not in self._updates:
            statement = sqls.update(self.table, *names, key=self._key)
            self._updates[names] = statement, self.codec.encoder({name: name for name in names})
        statement, encode = self._updates[names]
        keys = {f"key_{name}": value for name, value in zip(self._key, key, strict=True)}
        tx.execute_fast(statement, {**encode(SimpleNamespace(**changes), tx.secrets), **keys})

    def save_all(self, tx: Tx, changed: Iterable[T]) -> None:
        """Insert objects, or write all columns but the fixed ones of those that exist, with the next statement."""
        tx.put_rows(self.table, [self.encode(item, tx.secrets) for item in changed], self._replace)

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
def _insert(table: str, names: tuple[str, ...], unless_exists: bool = False) -> Statement:
    statement = sqls.insert(table, *names)
    return sql(f"{statement.text} ON CONFLICT DO NOTHING RETURNING {names[0]}") if unless_exists else statement


def _encrypt(tx: Tx, values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    for name in names:
        values[name] = tx.secrets.encrypt(values[name], always=True)
    return values
