"""
Repositories: the statements that add, find, change and delete the rows of one struct of ``model``, made at import.

A field and its column have the same name. The field's annotation determines the form of the column, and None is NULL.
``rows`` states for each table which columns are encrypted, and in which secrets are redacted. Most columns hold
the values themselves, so a codec is a list of functions for the others: this makes it as fast as written code.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum, EnumType
from functools import cache, partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from stoker.model.errors import EntityNotFound
from stoker.store import rows
from stoker.store import sql as sqls
from stoker.store.query import Query
from stoker.store.rows import ENCRYPTED, ENCRYPTED_COLUMNS, REDACTED_COLUMNS, ProtectedColumns, SecretColumns
from stoker.store.sql import Statement, sql
from stoker.store.tx import Tx

T = TypeVar("T", bound=Struct)
#: Converts (object, the transaction's secrets, names of columns to encrypt whether they contain a secret or not) to the
#: parameters of a statement. The names may be left out.
Encoder = Callable[..., dict[str, Any]]
#: Converts (row, the transaction's secrets) to an object. The transaction learns the secrets in the row.
Decoder = Callable[[Any, SecretColumns], T]

#: The database generates the values of this column: a field of this name is read, but never written.
SERIAL = "seq"


class _Form(NamedTuple):
    """The form of a column: functions of one value that is not None. None: the column holds the value itself."""

    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None


#: Times are microseconds since 1970 in UTC, periods are microseconds.
_FORMS: Mapping[Any, _Form] = {
    str: _Form(),
    int: _Form(),
    bytes: _Form(),
    bool: _Form(decode=bool),
    datetime: _Form(),  # converted in the codec's own loops, as structures are when they are encoded
    timedelta: _Form(rows.to_duration, partial(timedelta, 0, 0)),
}


#: By whether a column has bytes: how its encrypted values begin, and what decrypts them.
_REVEAL: Mapping[bool, tuple[Any, Callable[[SecretColumns, Any], Any]]] = {
    False: (ENCRYPTED, SecretColumns.decrypt),
    True: (ENCRYPTED.encode(), SecretColumns.decrypt_bytes),
}


class Codec(Generic[T]):
    """
    The mapping between the struct ``model`` and the table of this name::

        codec = Codec(Claim, "claims")
        tx.execute_fast(insert("claims", *codec.written), codec.encode(claim, tx.secrets))
        codec.decode(row, tx.secrets)

    ``decode`` expects the columns ``fields`` at the beginning of a row, in this order; ``encode`` returns ``written``.
    Raises TypeError for a field with several types.
    """

    def __init__(self, model: type[T], table: str) -> None:
        self.model = model
        self.fields = model.__struct_fields__
        self.written = tuple(name for name in self.fields if name != SERIAL)
        hints = get_type_hints(model)
        kinds = {name: without_none(hints[name]) for name in self.fields}
        self._forms = {name: _find_form(kind) for name, kind in kinds.items()}
        self._times = _of_kind(datetime, kinds)
        self._structures = {name for name, kind in kinds.items() if _is_structure(kind)}
        self._redacted = set(REDACTED_COLUMNS.get(table, ()))
        encrypted = kinds.keys() & ENCRYPTED_COLUMNS.get(table, ())
        self._encrypted_bytes = encrypted & _of_kind(bytes, kinds)
        self._encrypted = encrypted - self._encrypted_bytes
        self.encode: Encoder = self.encoder({name: name for name in self.written})
        self.decode: Decoder[T] = self._decoder()

    def encoder(self, parameters: Mapping[str, str]) -> Encoder:
        """Return a function that encodes some of the columns. ``parameters`` are parameter → name of the field."""
        names, fields = tuple(parameters), tuple(parameters.values())
        # The first field once more, because a getter of one name returns no tuple.
        get = attrgetter(*fields, fields[0])
        times, structures, *protected = (
            [name for name, field in parameters.items() if field in chosen]
            for chosen in (self._times, self._structures, self._encrypted, self._encrypted_bytes, self._redacted)
        )
        columns = ProtectedColumns(*protected)
        hidden = [field for field in fields if field in self._encrypted | self._encrypted_bytes]
        get_hidden = attrgetter(*hidden, hidden[0]) if hidden else None
        plain = [(name, form) for name, field in parameters.items() if (form := self._forms[field].encode)]
        epoch, microsecond, encode_json = rows.EPOCH, rows.MICROSECOND, rows.encode_json

        def encode(it: T, secrets: SecretColumns, always: Collection[str] = ()) -> dict[str, Any]:
            values = dict(zip(names, get(it), strict=False))
            for name in times:
                moment = values[name]
                if moment is not None:
                    values[name] = (moment - epoch) // microsecond
            for name in structures:
                value = values[name]
                if value is not None:
                    values[name] = encode_json(value).decode()
            for name, convert in plain:
                value = values[name]
                if value is not None:
                    values[name] = convert(value)
            if secrets.texts or (get_hidden is not None and any(get_hidden(it))):
                secrets.protect(values, columns, always)
            return values

        return encode

    def _decoder(self) -> Decoder[T]:
        model, names, count = self.model, self.fields, len(self.fields)
        forms = [(names.index(name), name, form.decode) for name, form in self._forms.items()]
        hidden = self._encrypted | self._encrypted_bytes
        plain = [(i, decode) for i, name, decode in forms if decode and name not in hidden]
        encrypted = [
            (i, *_REVEAL[name in self._encrypted_bytes], decode) for i, name, decode in forms if name in hidden
        ]
        times = [*map(names.index, self._times)]
        epoch = rows.EPOCH

        def decode(row: Any, secrets: SecretColumns) -> T:
            values = list(row[:count])
            for i in times:
                micros = values[i]
                if micros is not None:
                    values[i] = epoch + timedelta(0, 0, micros)
            for i, convert in plain:
                value = values[i]
                if value is not None:
                    values[i] = convert(value)
            for i, prefix, reveal, parse in encrypted:
                value = values[i]
                if value is not None:
                    text = reveal(secrets, value) if value.startswith(prefix) else value
                    values[i] = parse(text) if parse else text
            return model(**dict(zip(names, values, strict=True)))

        return decode


def _find_form(kind: Any) -> _Form:
    if kind in _FORMS:
        return _FORMS[kind]
    if isinstance(kind, EnumType):
        members = {member.value: member for member in cast(type[Enum], kind)}
        return _Form(attrgetter("value"), members.__getitem__)
    return _Form(None, msgspec.json.Decoder(Any if get_origin(kind) is Mapping else kind).decode)


def _of_kind(kind: type, kinds: Mapping[str, Any]) -> set[str]:
    """Return the names of the fields of this type."""
    return {name for name in kinds if kinds[name] is kind}


def _is_structure(kind: Any) -> bool:
    """Return whether a column has the values of this type as JSON."""
    return kind not in _FORMS and not isinstance(kind, EnumType)


def without_none(annotation: Any) -> Any:
    """Return a field's annotation without None. Raises TypeError if it has several other types."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    options = [option for option in get_args(annotation) if option is not types.NoneType]
    if len(options) != 1:
        raise TypeError(f"the field of a column has one type, and possibly None: not {annotation}")
    return options[0]


class Repository(Generic[T]):
    """
    The rows of ``table`` as objects of the struct ``model``::

        _CLAIMS = Repository(Claim, "claims", key=("queue_id", "id"), fixed=("queue_id",))
        _EXPIRED = _CLAIMS.select("expires_at <= :now")

        claim = _CLAIMS.find(tx, queue_id, id, for_update=True)
        expired = _CLAIMS.all(tx, _EXPIRED, {"now": now})

    A noun's module exports what needs no more than that::

        add, find, get = _CLAIMS.add, _CLAIMS.find, _CLAIMS.get
        list_expired: Callable[[Tx, datetime], list[Claim]] = _CLAIMS.lister("expires_at <= :at ORDER BY id")

    A query that joins begins with ``columns``: ``sql(f"SELECT {_CLAIMS.columns} FROM claims JOIN …")``.

    ``key`` names the columns that identify a row, ``fixed`` those that ``save`` does not write. ``noun`` is the name of
    an object in errors.
    """

    def __init__(
        self,
        model: type[T],
        table: str,
        *,
        key: tuple[str, ...] = ("id",),
        fixed: Collection[str] = (),
        noun: str = "",
    ) -> None:
        #: The name of the table.
        self.table = table
        self._noun = noun
        self.codec = codec = Codec(model, table)
        self.encode, self.decode = codec.encode, codec.decode
        self.fixed = (*key, *fixed)
        self._key = key
        #: The columns that ``decode`` expects at the beginning of a row.
        self.columns = ", ".join(f"{table}.{sqls.quote(name)}" for name in codec.fields)
        self._find = self.select(sqls.equal(*key))
        self._several = self.select(f"{key[0]} @in(ids) ORDER BY {key[0]}")
        changing = [name for name in codec.written if name not in self.fixed]
        self._update = sqls.update(self.table, *changing, key=key)
        self._encode_changes = codec.encoder(
            {**{name: name for name in changing}, **{f"key_{name}": name for name in key if name in codec.fields}}
        )
        replaced = ", ".join(f"{sqls.quote(name)} = excluded.{sqls.quote(name)}" for name in changing)
        self._replace = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {replaced}"
        self._delete = sqls.delete(self.table, *key)
        #: The statements of ``update`` and their encoders, by the names of the columns.
        self._updates: dict[tuple[str, ...], tuple[Statement, Encoder]] = {}

    def select(self, condition: str) -> Statement:
        """
        Return the query for the rows that match a condition, for use with ``first`` and ``all``.

        ``condition`` is what follows WHERE; it may end with ORDER BY and LIMIT.
        """
        return sql(f"SELECT {self.columns} FROM {self.table} WHERE {condition}")

    def finder(self, condition: str) -> Callable[..., T | None]:
        """Return a function (``query``) for the first object that matches a condition, or None. See ``select``."""
        return Query(self.select(condition), self.first)

    def lister(self, condition: str) -> Callable[..., list[T]]:
        """Return a function (``query``) for the objects that match a condition. See ``select``."""
        return Query(self.select(condition), self.all)

    def add(
        self,
        tx: Tx,
        new: T,
        *,
        encrypt: Collection[str] = (),
        unless_exists: bool = False,
        later: bool = False,
        **columns: Any,
    ) -> bool:
        """
        Insert an object: with ``later``, with the next other statement (``Tx.put``).

        With ``unless_exists``, return False instead if a unique index has its values already.

        ``encrypt`` names columns that are encrypted even if the transaction knows no secret in them. ``columns`` are
        the values of other columns, as stored.
        """
        values = self.encode(new, tx.secrets, encrypt) | columns
        statement = _insert(self.table, tuple(values), unless_exists)
        if later:
            tx.put(statement, values)
            return True
        return tx.execute_fast(statement, values) is not None or not unless_exists

    def add_all(self, tx: Tx, new: Iterable[T], *, replace: bool = False) -> None:
        """
        Insert objects with the next other statement (``Tx.put``).

        ``replace``: of those that exist, write all columns but the fixed ones.
        """
        values = [self.encode(item, tx.secrets) for item in new]
        tx.put_rows(self.table, values, self._replace if replace else "")

    def find(self, tx: Tx, *key: Any, for_update: bool = False) -> T | None:
        """Return the object with this key, or None; ``for_update`` locks its row."""
        place = (self.table, *key)
        if place in tx.cache and not for_update:
            row = tx.cache[place]
            return None if row is None else self.decode(row, tx.secrets)
        return self.first(tx, self._find, dict(zip(self._key, key, strict=True)), for_update=for_update)

    def get(self, tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> T:
        """
        Return the object; ``for_update`` locks its row.

        Raises EntityNotFound if there is none, or if it belongs to another project than ``project_id``.
        """
        return require(self.find(tx, id, for_update=for_update), self._noun, id, project_id)

    def prime(self, tx: Tx, ids: Iterable[str]) -> None:
        """
        Read the rows with these keys at once: ``find`` takes them from memory, as ``save`` has written them, until
        another method writes them.

        ``find`` decodes the rows, and the transaction learns their secrets then.
        """
        missing = [id for id in ids if (self.table, id) not in tx.cache]
        if not missing:
            return
        if tx.is_reading:
            tx.cache |= dict.fromkeys((self.table, id) for id in missing)
        position = self.codec.fields.index(self._key[0])
        stored = tx.fetch_all(self._several, {"ids": rows.dump(missing)})
        tx.cache |= {(self.table, row[position]): row for row in stored}

    def first(self, tx: Tx, query: Statement, values: Mapping[str, Any], *, for_update: bool = False) -> T | None:
        """Return the object in the first row of a query made by ``select``, or None."""
        row = tx.execute_fast(query.for_update if for_update else query, values)
        return None if row is None else self.decode(row, tx.secrets)

    def all(self, tx: Tx, query: Statement, values: Mapping[str, Any], *, for_update: bool = False) -> list[T]:
        """Return the objects in all rows of a query made by ``select``."""
        decode, secrets = self.decode, tx.secrets
        return [decode(row, secrets) for row in tx.fetch_all(query.for_update if for_update else query, values)]

    def find_several(self, tx: Tx, ids: Iterable[str]) -> list[T]:
        """Return the objects with these keys that exist."""
        listed = list(ids)
        return self.all(tx, self._several, {"ids": rows.dump(listed)}) if listed else []

    def save(self, tx: Tx, changed: T, *, encrypt: Collection[str] = (), later: bool = False) -> None:
        """
        Write all columns of an object except for the fixed ones. ``encrypt`` is as in ``add``.

        ``later``: with the next other statement (``Tx.put``).
        """
        values = self._encode_changes(changed, tx.secrets, encrypt)
        place = (self.table, *map(partial(getattr, changed), self._key)) if tx.cache else ()
        if (row := tx.cache.get(place)) is not None:
            tx.cache[place] = [values.get(name, column) for name, column in zip(self.codec.fields, row, strict=True)]
        (tx.put if later else tx.execute_fast)(self._update, values)

    def update(self, tx: Tx, *key: Any, later: bool = False, **changes: Any) -> None:
        """Write some columns of the row with this key. ``changes`` are values of the struct's fields."""
        tx.cache.pop((self.table, *key), None)
        names = tuple(changes)
        if names not in self._updates:
            statement = sqls.update(self.table, *names, key=self._key)
            self._updates[names] = statement, self.codec.encoder({name: name for name in names})
        statement, encode = self._updates[names]
        keys = {f"key_{name}": value for name, value in zip(self._key, key, strict=True)}
        (tx.put if later else tx.execute_fast)(statement, encode(SimpleNamespace(**changes), tx.secrets) | keys)

    def delete(self, tx: Tx, *key: Any) -> None:
        """Delete the row with this key."""
        tx.cache.pop((self.table, *key), None)
        tx.execute_fast(self._delete, dict(zip(self._key, key, strict=True)))


def require(entity: T | None, noun: str, id: str, project_id: str | None = None) -> T:
    """
    Return an object that was found. ``project_id`` is the project that it must belong to; None: any project.

    Raises EntityNotFound, with ``noun`` and ``id``, for None and for an object of another project.
    """
    owned: Any = entity
    if entity is None or (project_id is not None and owned.project_id != project_id):
        raise EntityNotFound.of(noun, id)
    return entity


@cache
def _insert(table: str, names: tuple[str, ...], unless_exists: bool = False) -> Statement:
    statement = sqls.insert(table, *names)
    return sql(f"{statement.text} ON CONFLICT DO NOTHING RETURNING {names[0]}") if unless_exists else statement
