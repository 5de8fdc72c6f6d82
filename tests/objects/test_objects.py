"""The object store as the rest of Stoker uses it: inside a transaction."""

from __future__ import annotations

import pytest

from stoker.model.errors import Conflict
from stoker.objects.operations import (
    NO_CALLBACKS,
    WriteCallbacks,
    create_container,
    delete_container_and_all,
    put,
    read,
)
from stoker.store import objects
from support import query

P = "a" * 32


@pytest.fixture
def container(store):
    store.write(lambda tx: create_container(tx, P, "c"))
    return "c"


def write(store, name, data, callbacks=NO_CALLBACKS, container="c", **more):
    return store.write(lambda tx: put(tx, P, container, name, data, callbacks=callbacks, **more))


def contents(store, *names):
    with store.read() as tx:
        return [read(tx, P, "c", name)[1] for name in names]


def totals(store, name="c"):
    with store.read() as tx:
        found = objects.find_container(tx, P, name)
    return (found.objects, found.bytes)


def test_callbacks_run_in_the_transaction_of_the_write(store, container):
    heard = []

    def written(tx, account, container, name, data):
        heard.append((account, container, name, data))
        query.insert(tx, "projects", id=name, name=data.decode(), domain_id="d", description="", enabled=True)

    write(store, "quiet", b"Stoker's own, which nobody hears")
    assert heard == []
    write(store, "o", b"data", WriteCallbacks(lambda tx, *args: heard.append(args), written))
    assert heard == [(P, "c", "o"), (P, "c", "o", b"data")]
    with store.read() as tx:
        assert query.column(tx, "SELECT name FROM projects") == ["data"]


def test_a_write_that_a_callback_refuses_is_rolled_back(store, container):
    write(store, "o", b"old")

    def refuse(*_):
        raise Conflict("not now")

    with pytest.raises(Conflict, match="not now"):
        write(store, "o", b"new", WriteCallbacks(on_written=refuse))
    assert contents(store, "o") == [b"old"]
    assert totals(store) == (1, 3)


def test_a_callback_may_write_objects(store, container):
    def copy(tx, account, container, name, data):
        if name == "o":
            put(tx, account, container, "copy", data)

    write(store, "o", b"x", WriteCallbacks(on_written=copy))
    assert contents(store, "o", "copy") == [b"x", b"x"]


def test_containers_know_their_owner(store):
    assert store.write(lambda tx: create_container(tx, P, "a", owner="one")) is True
    assert store.write(lambda tx: create_container(tx, P, "a", owner="two")) is False
    store.write(lambda tx: create_container(tx, P, "b", {"x-container-meta-a": "1"}, owner="one"))
    store.write(lambda tx: create_container(tx, P, "nobodys"))
    with store.read() as tx:
        owners = {name: objects.find_container(tx, P, name).owner for name in ("a", "b", "nobodys")}
    assert owners == {"a": "one", "b": "one", "nobodys": None}


def test_a_container_is_deleted_with_its_objects(store):
    for name in ("c", "other"):
        store.write(lambda tx, n=name: create_container(tx, P, n))
        for data in (b"1", b"2"):
            write(store, "o", data, container=name)
    for _ in range(2):
        store.write(lambda tx: delete_container_and_all(tx, P, "c"))
    with store.read() as tx:
        assert query.column(tx, "SELECT DISTINCT container FROM objects") == ["other"]
        assert objects.totals(tx, P).containers == 1
