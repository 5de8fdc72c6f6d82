"""
Row codecs: the conversion between a frozen struct of ``model`` and the rows of a table.

A field and its column have the same name. The field's annotation determines the form of the column, and None is NULL.
``secret_columns`` states for each table which columns are encrypted, and in which secrets are redacted. Most columns
hold the values themselves, so a codec is a list of functions for the others: this makes it as fast as written code.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum, EnumType
from functools import partial
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from stoker.store import rows
from stoker.store.secret_columns import ENCRYPTED, REDACTED, SecretColumns

T = TypeVar("T", bound=msgspec.Struct)
#: Converts (object, the transaction's secrets) to the parameters of a statement.
Encoder = Callable[[T, SecretColumns], dict[str, Any]]
#: Converts (row, the transaction's secrets) to an object. The transaction learns the secrets in the row.
Decoder = Callable[[Any, SecretColumns], T]

#: The database generates the values of this column: a field of this name is read, but never written.
SERIAL = "seq"


class _Form(NamedTuple):
    """The form of a column: functions of one value that is not None. None: the column holds the value itself."""

    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None


class _SecretForm(NamedTuple):
    """The form of a column with secrets: functions of (the transaction's secrets, value)."""

    encode: Callable[[SecretColumns, Any], Any]
    decode: Callable[[SecretColumns, Any], Any] | None = None


#: Times are microseconds since 1970 in UTC, periods are microseconds.
_FORMS: Mapping[Any, _Form] = {
    str: _Form(),
    int: _Form(),
    bytes: _Form(),
    bool: _Form(decode=bool),
    datetime: _Form(),  # converted in the codec's own loops
    timedelta: _Form(lambda period: period // rows.MICROSECOND, partial(timedelta, 0, 0)),
}
_ENCRYPTED_FORMS: Mapping[Any, _SecretForm] = {
    str: _SecretForm(SecretColumns.encrypt, SecretColumns.decrypt),
    bytes: _SecretForm(SecretColumns.encrypt_bytes, SecretColumns.decrypt_bytes),
}
_REDACTED_FORM = _SecretForm(SecretColumns.redact_text)


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
        hints = get_type_hints(model)
        self.fields = model.__struct_fields__
        self.written = tuple(name for name in self.fields if name != SERIAL)
        forms = {name: _find_form(hints[name], name, table) for name in self.fields}
        self._forms = {name: form for name, form in forms.items() if isinstance(form, _Form)}
        self._times = {name for name in self.fields if without_none(hints[name]) is datetime}
        self._secret_forms = {name: form for name, form in forms.items() if isinstance(form, _SecretForm)}
        self.encode: Encoder[T] = self.encoder({name: name for name in self.written})
        self.decode: Decoder[T] = self._decoder()

    def encoder(self, parameters: Mapping[str, str]) -> Encoder[T]:
        """Return a function that encodes some of the columns. ``parameters`` are parameter → name of the field."""
        names, fields = tuple(parameters), tuple(parameters.values())
        # The first field once more, because a getter of one name returns no tuple.
        get = attrgetter(*fields, fields[0])
        forms = [(name, self._forms[field].encode) for name, field in parameters.items() if field in self._forms]
        plain = [(name, encode) for name, encode in forms if encode]
        protected = [(name, field) for name, field in parameters.items() if field in self._secret_forms]
        secret = [(name, self._secret_forms[field].encode) for name, field in protected]

        times = [name for name, field in parameters.items() if field in self._times]
        epoch, microsecond = rows.EPOCH, rows.MICROSECOND

        def encode(it: T, secrets: SecretColumns) -> dict[str, Any]:
            values = dict(zip(names, get(it), strict=False))
            for name in times:
                moment = values[name]
                if moment is not None:
                    values[name] = (moment - epoch) // microsecond
            for name, convert in plain:
                value = values[name]
                if value is not None:
                    values[name] = convert(value)
            for name, protect in secret:
                value = values[name]
                if value is not None:
                    values[name] = protect(secrets, value)
            return values

        return encode

    def _decoder(self) -> Decoder[T]:
        model, names, count = self.model, self.fields, len(self.fields)
        plain = [(names.index(name), form.decode) for name, form in self._forms.items() if form.decode]
        secret = [(names.index(name), form.decode) for name, form in self._secret_forms.items() if form.decode]

        times = [names.index(name) for name in self._times]
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
            for i, reveal in secret:
                value = values[i]
                if value is not None:
                    values[i] = reveal(secrets, value)
            return model(**dict(zip(names, values, strict=True)))

        return decode


def _find_form(annotation: Any, column: str, table: str) -> _Form | _SecretForm:
    kind = without_none(annotation)
    if column in REDACTED.get(table, ()):
        return _REDACTED_FORM
    if column in ENCRYPTED.get(table, ()):
        return _ENCRYPTED_FORMS.get(kind) or _encrypted_json(kind)
    if kind in _FORMS:
        return _FORMS[kind]
    if isinstance(kind, EnumType):
        members = {member.value: member for member in cast(type[Enum], kind)}
        return _Form(attrgetter("value"), members.__getitem__)
    return _Form(rows.dump, msgspec.json.Decoder(Any if _is_plain_json(kind) else kind).decode)


def _encrypted_json(kind: Any) -> _SecretForm:
    if _is_plain_json(kind):
        return _SecretForm(SecretColumns.dump, SecretColumns.load)
    parse = msgspec.json.Decoder(kind).decode
    return _SecretForm(SecretColumns.dump, lambda secrets, column: parse(secrets.decrypt(column)))


def _is_plain_json(kind: Any) -> bool:
    return kind is Any or get_origin(kind) is Mapping


def without_none(annotation: Any) -> Any:
    """Return a field's annotation without None. Raises TypeError if it has several other types."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    options = [option for option in get_args(annotation) if option is not types.NoneType]
    if len(options) != 1:
        raise TypeError(f"the field of a column has one type, and possibly None: not {annotation}")
    return options[0]
