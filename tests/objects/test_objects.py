"""The object store as the rest of Stoker uses it: inside a transaction."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import pytest

from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.objects import tempurl
from stoker.objects.operations import (
    NO_CALLBACKS,
    New,
    WriteCallbacks,
    create_container,
    delete,
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
    new = New(account=P, container=container, name=name, data=data, **more)
    return store.write(lambda tx: put(tx, new, callbacks))


def contents(store, *names):
    with store.read() as tx:
        return [read(tx, P, "c", name)[1] for name in names]


def totals(store, name="c"):
    with store.read() as tx:
        found = objects.find_container(tx, P, name)
    return (found.objects, found.bytes)


def test_objects_are_put_read_and_deleted(store, container):
    stored = write(store, "o", b"data", content_type="a/b")
    assert (stored.size, stored.content_type) == (4, "a/b")
    assert contents(store, "o") == [b"data"]
    assert store.write(lambda tx: delete(tx, P, "c", "o")) is True
    assert store.write(lambda tx: delete(tx, P, "c", "o")) is False
    with store.read() as tx, pytest.raises(EntityNotFound):
        read(tx, P, "c", "o")


def test_invalid_objects_are_refused(store, container):
    cases = (("o", "none", EntityNotFound), ("", "c", Invalid), ("x" * 1025, "c", Invalid), ("\0", "c", Invalid))
    for name, container_name, error in cases:
        with pytest.raises(error):
            write(store, name, b"", container=container_name)
    for name in ("", "a/b", "x" * 257, "\ud800"):
        with pytest.raises(Invalid):
            store.write(lambda tx, n=name: create_container(tx, P, n))
    assert totals(store) == (0, 0)


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
            put(tx, New(account=account, container=container, name="copy", data=data))

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


def test_a_temporary_url_of_stoker_is_valid():
    at = int(time.time()) + 60
    made = urlsplit(tempurl.url("http://h/object-store", "key", "PUT", P, "c", "a b/ü", at))
    assert made.path == f"/object-store/v1/AUTH_{P}/c/a%20b/%C3%BC"
    signed = tempurl.read({name: value for name, [value] in parse_qs(made.query).items()})
    paths = [f"/v1/AUTH_{P}/c/a b/ü"]
    assert tempurl.allows(signed, "PUT", paths, ["other", "key"], now=time.time())
    assert not tempurl.allows(signed, "GET", paths, ["key"], now=time.time())
    assert not tempurl.allows(signed, "PUT", [f"/v1/AUTH_{P}/c/a b"], ["key"], now=time.time())
    assert not tempurl.allows(signed, "PUT", paths, ["other"], now=time.time())
    assert not tempurl.allows(signed, "PUT", paths, ["key"], now=at + 1)


def test_signatures_equal_swifts():
    """Made once by python-swiftclient 4.11's generate_temp_url."""
    assert (
        tempurl.sign("key", "GET", "/v1/AUTH_a/c/o", 1_700_000_000)
        == "3e8f7b4bf6e1167c7d9bbba60658531687b31ef742e000dab8c2d7355cf70d82"
    )


def test_totals_match_the_contents(store, container):
    """Whatever is done, the columns say what counting would."""
    for round in range(3):
        write(store, "a", b"1" * 10)
        write(store, f"b{round}", b"12")
        write(store, "a", b"123")
        assert totals(store) == counted(store)
        for name in ("a", "none", "b0"):
            store.write(lambda tx, n=name: delete(tx, P, "c", n))
        assert totals(store) == counted(store)
    assert totals(store) == (2, 4)


def counted(store):
    with store.read() as tx:
        sizes = query.column(tx, "SELECT size FROM objects WHERE container = 'c'")
    return (len(sizes), sum(sizes))
