"""
Row codecs: the conversion between a frozen dataclass of ``model`` and the rows of a table.

A field and its column have the same name. The field's annotation determines the form of the column (``_FORMS``; other
annotations: JSON), and None is NULL. The column states what happens to secrets in it (``schema.base.ENCRYPTED``,
``REDACTED``). Both conversions are compiled at import: a loop over the fields would double the time of reading a row.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from enum import Enum, EnumType
from typing import Any, Generic, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
import sqlalchemy as sa

from stoker.store import rows
from stoker.store.schema.base import ENCRYPTED, REDACTED
from stoker.store.secret_columns import SecretColumns

T = TypeVar("T")
#: Converts (object, the transaction's secrets) to the parameters of a statement.
Encoder = Callable[[T, SecretColumns], dict[str, Any]]
#: Converts (row, the transaction's secrets) to an object. The transaction learns the secrets in the row.
Decoder = Callable[[Any, SecretColumns], T]


class _Form(NamedTuple):
    """The form of a column: its type, and the source of both conversions. ``{0}`` is the value or the column."""

    column: type[sa.types.TypeEngine[Any]]
    encode: str = "{0}"
    decode: str = "{0}"


#: Times are microseconds since 1970 in UTC, periods are microseconds.
_FORMS: Mapping[Any, _Form] = {
    str: _Form(sa.String),
    int: _Form(sa.Integer),
    bool: _Form(sa.Boolean, decode="bool({0})"),
    bytes: _Form(sa.LargeBinary),
    datetime: _Form(sa.Integer, "({0} - epoch) // microsecond", "epoch + timedelta(0, 0, {0})"),
    timedelta: _Form(sa.Integer, "{0} // microsecond", "timedelta(0, 0, {0})"),
}
_ENCRYPTED_FORMS: Mapping[Any, _Form] = {
    str: _Form(sa.String, "secrets.encrypt({0})", "secrets.decrypt({0})"),
    bytes: _Form(sa.LargeBinary, "secrets.encrypt_bytes({0})", "secrets.decrypt_bytes({0})"),
}
#: The names that the conversions use, in addition to the function's own parameters.
_NAMES = {
    "bool": bool,
    "dump": rows.dump,
    "epoch": rows.EPOCH,
    "microsecond": rows.MICROSECOND,
    "parse": rows.load,
    "timedelta": timedelta,
}


class Codec(Generic[T]):
    """
    The mapping between the dataclass ``model`` and ``table``::

        codec = Codec(Claim, claims)
        tx.run(sa.insert(claims), codec.encode(claim, tx.secrets))
        found = [codec.decode(row, tx.secrets) for row in tx.run(sa.select(*codec.columns))]

    ``unmapped`` names the columns that the dataclass does not have. The database generates the values of a serial
    column: ``decode`` reads it if the dataclass has it, ``encode`` omits it. Raises TypeError if the dataclass and the
    table do not match.
    """

    def __init__(self, model: type[T], table: sa.Table, unmapped: Collection[str] = ()) -> None:
        self.model, self.table = model, table
        self._fields = {
            name: _Field(name, annotation, table)
            for name, annotation in get_type_hints(model).items()
            if name in {field.name for field in dataclasses.fields(model)}  # type: ignore[arg-type]  # T is a dataclass
        }
        serial = {column.name for column in table.c if column is table.autoincrement_column}
        missing = {column.name for column in table.c} - serial - set(unmapped) ^ self._fields.keys() - serial
        if missing:
            raise TypeError(f"{model.__name__} and the table {table.name} do not match: {', '.join(sorted(missing))}")
        #: The columns that ``decode`` expects at the beginning of a row, in this order.
        self.columns = tuple(field.column for field in self._fields.values())
        #: The names of the fields.
        self.fields: Collection[str] = self._fields.keys()
        #: The names of the columns that ``encode`` returns.
        self.written = tuple(name for name in self._fields if name not in serial)
        self.encode: Encoder[T] = self.encoder({name: name for name in self.written})
        self.decode: Decoder[T] = self._decoder(model)

    def encoder(self, parameters: Mapping[str, str]) -> Encoder[T]:
        """Compile a function that encodes some of the columns. ``parameters`` are parameter → name of the field."""
        items = (f"{name!r}: {self._fields[field].encode(f'it.{field}')}" for name, field in parameters.items())
        return _compile("encode(it, secrets)", f"{{{', '.join(items)}}}", {})

    def _decoder(self, model: type[T]) -> Decoder[T]:
        arguments = (f"{name}={field.decode(f'row[{i}]')}" for i, (name, field) in enumerate(self._fields.items()))
        names = {name: value for field in self._fields.values() for name, value in field.names.items()}
        return _compile("decode(row, secrets)", f"model({', '.join(arguments)})", {**names, "model": model})


class _Field:
    """A field of a dataclass, with its column and its form."""

    def __init__(self, name: str, annotation: Any, table: sa.Table) -> None:
        if name not in table.c:
            raise TypeError(f"the table {table.name} has no column for the field {name!r}")
        self.column: sa.Column[Any] = table.c[name]
        kind, self._is_optional = _without_none(annotation)
        #: Names that only the decoder of this field uses.
        self.names: dict[str, Any] = {}
        self._form = self._find_form(kind)
        if not isinstance(self.column.type, self._form.column):
            raise TypeError(f"the column {self.column} is {self.column.type!r}, but its field is {annotation}")
        if self.column.nullable != self._is_optional and self.column is not table.autoincrement_column:
            null = "NULL" if self.column.nullable else "no NULL"
            raise TypeError(f"the column {self.column} permits {null}, but its field is {annotation}")

    def encode(self, value: str) -> str:
        """Return the source that converts the source ``value`` to the column."""
        if self.column.info == REDACTED:
            return f"secrets.redact_text({value})"
        return self._unless_none(value, self._form.encode)

    def decode(self, column: str) -> str:
        """Return the source that converts the source ``column`` to the field's value."""
        return self._unless_none(column, self._form.decode)

    def _unless_none(self, value: str, template: str) -> str:
        source = template.format(value)
        return f"None if {value} is None else {source}" if self._is_optional and source != value else source

    def _find_form(self, kind: Any) -> _Form:
        is_encrypted = self.column.info == ENCRYPTED
        form = (_ENCRYPTED_FORMS if is_encrypted else _FORMS).get(kind)
        if form is not None:
            return form
        key = self.column.name
        if isinstance(kind, EnumType):
            self.names[f"members_of_{key}"] = {member.value: member for member in cast(type[Enum], kind)}
            return _Form(sa.String, "{0}.value", f"members_of_{key}[{{0}}]")
        encode, text = ("secrets.dump({0})", "secrets.decrypt({0})") if is_encrypted else ("dump({0})", "{0}")
        if kind is Any or get_origin(kind) is Mapping:
            return _Form(sa.Text, encode, "secrets.load({0})" if is_encrypted else "parse({0})")
        self.names[f"parse_{key}"] = msgspec.json.Decoder(kind).decode
        return _Form(sa.Text, encode, f"parse_{key}({text})")


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """Return the annotation without None, and whether it permits None."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    options = [option for option in get_args(annotation) if option is not types.NoneType]
    if len(options) != 1:
        raise TypeError(f"the field of a column has one type, and possibly None: not {annotation}")
    return options[0], True


def _compile(signature: str, result: str, names: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function with this signature that returns the value of the source ``result``."""
    scope = {**_NAMES, **names}
    exec(f"def {signature}:\n    return {result}\n", scope)  # noqa: S102 — the source contains names of fields only
    function: Callable[..., Any] = scope[signature.partition("(")[0]]
    return function
