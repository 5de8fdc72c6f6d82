"""Every dataclass with a repository is stored and read without a difference, and its secrets are protected."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from stoker import store as package
from stoker.store import schema
from stoker.store.codec import Codec
from stoker.store.repository import Repository
from stoker.store.schema.base import ENCRYPTED, REDACTED
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
    return objects_of(annotation) if dataclasses.is_dataclass(annotation) else json


def objects_of(model: type, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(model)
    own = {field.name: values_of(hints[field.name]) for field in dataclasses.fields(model)}
    return st.builds(model, **{**own, **fields})


def empty(column: sa.Column[Any], parent: str = "parent") -> Any:
    """A value of a column that the test does not choose."""
    if column.foreign_keys or column.primary_key:
        return parent if isinstance(column.type, sa.String) else 1
    return None if column.nullable else "{}" if isinstance(column.type, sa.Text) else column.type.python_type()


def add_parents(tx: Any, table: sa.Table) -> None:
    """Insert the rows that a row of this table refers to, with the id ``parent``."""
    for column in table.c:
        for key in column.foreign_keys:
            parent = key.column.table
            add_parents(tx, parent)
            if tx.run(sa.select(parent.c.id).where(parent.c.id == "parent")).first() is None:
                row = {column.name: empty(column) for column in parent.c if column.name not in ("id", "seq")}
                tx.run(sa.insert(parent), {"id": "parent", **row})


def rows_of(repository: Repository[Any]) -> st.SearchStrategy[Any]:
    """Objects that the table accepts: links point to the parents, serial columns are zero."""
    codec = repository.codec
    links = {name: st.just("parent") for name in codec.fields if codec.table.c[name].foreign_keys}
    serial = {name: st.just(0) for name in codec.fields if codec.table.c[name] is codec.table.autoincrement_column}
    return objects_of(codec.model, **links, **serial)


def unmapped(repository: Repository[Any]) -> dict[str, Any]:
    """Values of the columns that the dataclass does not have."""
    columns = [column for column in repository.codec.table.c if column.name not in repository.codec.fields]
    serial = repository.codec.table.autoincrement_column
    return {column.name: empty(column) for column in columns if column is not serial}


def read_all(tx: Any, repository: Repository[Any]) -> list[Any]:
    """The stored objects, without the numbers of serial columns."""
    serial = {name: 0 for name in repository.codec.fields if name not in repository.codec.written}
    parents = {"parent"} if repository.codec.table.name in ("stacks", "servers", "deployments", "triggers") else set()
    found = repository.all(tx, repository.select(), {})
    return [dataclasses.replace(one, **serial) for one in found if getattr(one, "id", None) not in parents]


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

    @settings(
        max_examples=examples(15),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(rows_of(repository), rows_of(repository))
    def check(first: Any, second: Any) -> None:
        def do(tx: Any) -> None:
            add_parents(tx, repository.codec.table)
            repository.add(tx, first, **unmapped(repository))
            assert read_all(tx, repository) == [first]
            kept = {field: getattr(first, field) for field in repository.fixed if field in repository.codec.fields}
            if set(repository.fixed) <= set(repository.codec.written):
                changed = dataclasses.replace(second, **kept)
                repository.save(tx, changed)
                assert read_all(tx, repository) == [changed]

        note(name)
        undo(store, do)

    check()


def has_secrets(name: str) -> bool:
    codec = REPOSITORIES[name].codec
    return any(codec.table.c[field].info in (ENCRYPTED, REDACTED) for field in codec.fields)


def with_secrets(annotation: Any) -> Any:
    """A value with the secret in it, for a field whose column is encrypted or redacted."""
    if annotation is str or get_args(annotation)[:1] == (str,):
        return f'"a {SECRET} b"'
    value = {"a": {"b": SECRET}}
    return (value,) if get_origin(annotation) is tuple else value


@pytest.mark.parametrize("name", sorted(name for name in REPOSITORIES if has_secrets(name)))
def test_no_secret_is_stored_in_the_clear(store, name):
    repository = REPOSITORIES[name]
    codec = repository.codec
    hints = get_type_hints(codec.model)
    encrypted = [field for field in codec.fields if codec.table.c[field].info == ENCRYPTED]
    redacted = [field for field in codec.fields if codec.table.c[field].info == REDACTED]
    texts_with_secrets = {field: with_secrets(hints[field]) for field in (*encrypted, *redacted)}

    @settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(rows_of(repository))
    def check(plain: Any) -> None:
        new = dataclasses.replace(plain, **texts_with_secrets)

        def do(tx: Any) -> None:
            add_parents(tx, codec.table)
            tx.secrets.learn([SECRET])
            repository.add(tx, new, **unmapped(repository))
            assert SECRET not in str(tx.run(sa.select(codec.table)).mappings().all())
            tx.secrets.texts.clear()
            [read] = read_all(tx, repository)
            assert [getattr(read, field) for field in encrypted] == [getattr(new, field) for field in encrypted]
            assert bool(encrypted) == (SECRET in tx.secrets.texts), "the reader knows what is secret"
            assert all(SECRET not in str(getattr(read, field)) for field in redacted)

        undo(store, do)

    check()


table = sa.Table(
    "things",
    sa.MetaData(),
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("at", sa.BigInteger),
    sa.Column("size", sa.Integer, nullable=False),
)


def model(**annotations: Any) -> type:
    return dataclass(type("Thing", (), {"__annotations__": annotations}))


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"id": str, "at": datetime | None}, "Thing and the table things do not match: size"),
        ({"id": str, "at": datetime | None, "size": int, "extra": int}, "no column for the field 'extra'"),
        ({"id": str, "at": datetime, "size": int}, "permits NULL"),
        ({"id": str, "at": datetime | None, "size": int | None}, "permits no NULL"),
        ({"id": int, "at": datetime | None, "size": int}, "the column things.id"),
        ({"id": str, "at": datetime | None, "size": dict}, "the column things.size"),
        ({"id": str | int, "at": datetime | None, "size": int}, "one type"),
    ],
)
def test_a_dataclass_that_does_not_match_its_table_is_refused_at_import(annotations, message):
    with pytest.raises(TypeError, match=message):
        Codec(model(**annotations), table)


def test_columns_are_left_out_only_by_name():
    assert Codec(model(id=str, size=int), table, unmapped=("at",)).written == ("id", "size")
    with pytest.raises(TypeError, match="do not match: at"):
        Codec(model(id=str, at=datetime | None, size=int), table, unmapped=("at",))


def test_every_encrypted_column_is_rotated():
    from stoker.store.key_rotation import COLUMNS

    names = {f"{table.name}.{name}" for table, names in COLUMNS.items() for name in names}
    assert {"stacks.parameters", "configs.body", "deployments.input_values", "ec2_credentials.secret"} <= names
    assert names == {str(c) for t in schema.metadata.sorted_tables for c in t.c if c.info == ENCRYPTED}
