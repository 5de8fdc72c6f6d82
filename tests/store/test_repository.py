"""Every dataclass with a repository is stored and read without a difference, and its secrets are protected."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from msgspec import Struct, defstruct
from msgspec.structs import replace

from stoker import store as package
from stoker.store.repository import SERIAL, Codec, Repository, without_none
from stoker.store.rows import ENCRYPTED_COLUMNS, REDACTED_COLUMNS
from support import tables
from support.search import examples

SECRET = "S3CR3T-of-a-test"
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
SIMPLE = {
    str: texts,
    bool: st.booleans(),
    bytes: st.binary(max_size=10),
    float: st.integers(0, 1000).map(float),
    int: st.integers(-(2**31), 2**31 - 1),
    datetime: st.datetimes(timezones=st.just(UTC)),
    timedelta: st.timedeltas(timedelta(0), timedelta(days=365)),
}


def repositories() -> dict[str, Repository[Any]]:
    modules = [
        importlib.import_module(f"stoker.store.{module.name}") for module in pkgutil.iter_modules(package.__path__)
    ]
    every = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Repository)}
    return {repository.codec.model.__name__: repository for repository in every.values()}


REPOSITORIES = repositories()


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation, in the form in which JSON returns them."""
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is UnionType:
        return st.one_of(st.none() if option is NoneType else values_of(option) for option in arguments)
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(texts, values_of(arguments[1]), max_size=3)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    return objects_of(annotation) if dataclasses.is_dataclass(annotation) or _is_struct(annotation) else json


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Struct)


def objects_of(model: type, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    own = {name: values_of(annotation) for name, annotation in get_type_hints(model).items()}
    return st.builds(model, **{**own, **fields})


def rows_of(store: Any, repository: Repository[Any]) -> st.SearchStrategy[Any]:
    """Objects that the table accepts: links point to the parents, serial columns are zero."""
    codec = repository.codec
    with store.read() as tx:
        columns = tables.columns(tx, repository.table).values()
    links = {one.name: st.just("parent") for one in columns if one.references and one.name in codec.fields}
    serial = {SERIAL: st.just(0)} if SERIAL in codec.fields else {}
    return objects_of(codec.model, **links, **serial)


def unmapped(tx: Any, repository: Repository[Any]) -> dict[str, Any]:
    """Values of the columns that the struct does not have."""
    columns = tables.columns(tx, repository.table).values()
    return {
        column.name: column.a_value("parent")
        for column in columns
        if column.name not in repository.codec.fields and not column.is_serial
    }


def read_all(tx: Any, repository: Repository[Any]) -> list[Any]:
    """The stored objects, without the numbers of serial columns."""
    serial = {name: 0 for name in repository.codec.fields if name not in repository.codec.written}
    parents = {"parent"} if repository.table in ("stacks", "servers", "deployments", "triggers") else set()
    found = repository.all(tx, repository.select("true"), {})
    return [replace(one, **serial) for one in found if getattr(one, "id", None) not in parents]


class Undone(Exception):
    pass


def undo(store: Any, do: Any) -> None:
    def run(tx: Any) -> None:
        do(tx)
        raise Undone

    with pytest.raises(Undone):
        store.write(run)


def test_most_tables_have_a_repository():
    assert {"Deployment", "Run", "Stack", "Resource", "Server", "Trigger", "Message", "Stored"} <= REPOSITORIES.keys()
    assert len(REPOSITORIES) >= 24


@pytest.mark.parametrize("name", sorted(REPOSITORIES))
def test_an_object_returns_as_it_was_stored(store, name):
    repository = REPOSITORIES[name]
    rows = rows_of(store, repository)

    @settings(max_examples=examples(15))
    @given(rows, rows)
    def check(first: Any, second: Any) -> None:
        def do(tx: Any) -> None:
            tables.add_parents(tx, repository.table)
            repository.add(tx, first, **unmapped(tx, repository))
            assert read_all(tx, repository) == [first]
            kept = {field: getattr(first, field) for field in repository.fixed if field in repository.codec.fields}
            if set(repository.fixed) <= set(repository.codec.written):
                changed = replace(second, **kept)
                repository.save(tx, changed)
                assert read_all(tx, repository) == [changed]

        note(name)
        undo(store, do)

    check()


def has_secrets(name: str) -> bool:
    table, fields = REPOSITORIES[name].table, REPOSITORIES[name].codec.fields
    return any(field in (*ENCRYPTED_COLUMNS.get(table, ()), *REDACTED_COLUMNS.get(table, ())) for field in fields)


def with_secrets(annotation: Any) -> Any:
    """A value with the secret in it, for a field whose column is encrypted or redacted."""
    if annotation is str or get_args(annotation)[:1] == (str,):
        return f'"a {SECRET} b"'
    if bytes in get_args(annotation):
        return f"a {SECRET} b".encode()
    value = {"a": {"b": SECRET}}
    return (value,) if get_origin(annotation) is tuple else value


@pytest.mark.parametrize("name", sorted(name for name in REPOSITORIES if has_secrets(name)))
def test_no_secret_is_stored_in_the_clear(store, name):
    repository = REPOSITORIES[name]
    codec = repository.codec
    hints = get_type_hints(codec.model)
    encrypted = [field for field in codec.fields if field in ENCRYPTED_COLUMNS.get(repository.table, ())]
    redacted = [field for field in codec.fields if field in REDACTED_COLUMNS.get(repository.table, ())]
    texts_with_secrets = {field: with_secrets(hints[field]) for field in (*encrypted, *redacted)}

    @settings(max_examples=3)
    @given(rows_of(store, repository))
    def check(plain: Any) -> None:
        new = replace(plain, **texts_with_secrets)

        def do(tx: Any) -> None:
            tables.add_parents(tx, repository.table)
            tx.secrets.learn([SECRET])
            repository.add(tx, new, **unmapped(tx, repository))
            assert SECRET not in str(tables.read_rows(tx, repository.table))
            tx.secrets = tx.new_secrets()
            [read] = read_all(tx, repository)
            assert [getattr(read, field) for field in encrypted] == [getattr(new, field) for field in encrypted]
            assert bool(encrypted) == (SECRET in tx.secrets.texts), "the reader knows what is secret"
            assert all(SECRET not in str(getattr(read, field)) for field in redacted)

        undo(store, do)

    check()


@pytest.mark.parametrize("name", sorted(REPOSITORIES))
def test_a_dataclass_matches_its_table(store, name):
    repository = REPOSITORIES[name]
    hints = get_type_hints(repository.codec.model)
    with store.read() as tx:
        columns = tables.columns(tx, repository.table)
    assert set(repository.codec.fields) | set(repository.fixed) <= columns.keys()
    optional = {field for field in repository.codec.fields if without_none(hints[field]) != hints[field]}
    assert optional - {SERIAL} == {
        field for field in repository.codec.fields if not columns[field].is_required and field != SERIAL
    }
    assert all(column.is_serial == (column.name == SERIAL) for column in columns.values())


def test_a_field_has_one_type():
    model = defstruct("Thing", [("id", str | int)])
    with pytest.raises(TypeError, match="one type"):
        Codec(model, "things")


def test_secrets_are_stated_of_columns_that_exist(store):
    with store.read() as tx:
        for table, names in (*ENCRYPTED_COLUMNS.items(), *REDACTED_COLUMNS.items()):
            columns = tables.columns(tx, table)
            assert {columns[name].type.lower() for name in names} <= {"text", "blob", "bytea"}
