"""The object store as other rooms use it: through a transaction of theirs."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.model.objects import Page
from stoker.objects import Objects, container_operations, expiry, object_operations, tempurl, versions
from stoker.store import accounts, containers, rows, schema
from stoker.store import objects as stored
from support.work import ManualWork

P = "a" * 32


@pytest.fixture
def work():
    return ManualWork()


@pytest.fixture
def objects(store, work):
    return Objects(store, work)


@pytest.fixture
def container(store, objects):
    store.write(lambda tx: objects.create_container(tx, P, "c"))
    return "c"


def contents(store, objects, *names):
    with store.read() as tx:
        return [objects.get(tx, P, "c", name) for name in names]


def totals(store, name="c"):
    with store.read() as tx:
        found = containers.find(tx, P, name)
    return (found.objects, found.bytes, found.kept)


def test_objects_are_put_read_and_deleted(store, objects, container):
    stored = store.write(lambda tx: objects.put(tx, P, "c", "o", b"data", content_type="a/b"))
    assert (stored.size, stored.content_type) == (4, "a/b")
    assert contents(store, objects, "o") == [b"data"]
    assert store.write(lambda tx: objects.delete(tx, P, "c", "o")) is True
    assert store.write(lambda tx: objects.delete(tx, P, "c", "o")) is False
    with store.read() as tx, pytest.raises(EntityNotFound):
        objects.get(tx, P, "c", "o")


def test_invalid_objects_are_refused(store, objects, container):
    cases = (("o", "none", EntityNotFound), ("", "c", Invalid), ("x" * 1025, "c", Invalid), ("\0", "c", Invalid))
    for name, container_name, error in cases:
        with pytest.raises(error):
            store.write(lambda tx, n=name, c=container_name: objects.put(tx, P, c, n, b""))
    for name in ("", "a/b", "x" * 257, "\ud800"):
        with pytest.raises(Invalid):
            store.write(lambda tx, n=name: objects.create_container(tx, P, n))
    assert totals(store) == (0, 0, 0)


def put(tx, objects, name, data):
    """As a client's request does."""
    return object_operations.put(
        tx, objects.port, object_operations.New(account=P, container="c", name=name, data=data)
    )


@pytest.fixture
def listening(store, work):
    """An object store whose callbacks the test provides."""
    return lambda written, writing=None: Objects(store, work, writing, written)


def test_callbacks_run_in_the_transaction_of_the_write(store, listening, container):
    heard = []

    def written(tx, account, container, name, data):
        heard.append((account, container, name, data))
        tx.run(
            sa.insert(schema.projects),
            {"id": name, "name": data.decode(), "domain_id": "d", "description": "", "enabled": True},
        )

    objects = listening(written, lambda tx, *args: heard.append(args))
    store.write(lambda tx: objects.put(tx, P, "c", "quiet", b"Stoker's own, which nobody hears"))
    assert heard == []
    store.write(lambda tx: put(tx, objects, "o", b"data"))
    assert heard == [(P, "c", "o"), (P, "c", "o", b"data")]
    with store.read() as tx:
        assert tx.run(sa.select(schema.projects.c.name)).scalars().all() == ["data"]


def test_a_write_that_a_callback_refuses_is_rolled_back(store, objects, listening, container):
    store.write(lambda tx: objects.put(tx, P, "c", "o", b"old"))

    def refuse(*_):
        raise Conflict("not now")

    objects = listening(refuse)
    with pytest.raises(Conflict, match="not now"):
        store.write(lambda tx: put(tx, objects, "o", b"new"))
    assert contents(store, objects, "o") == [b"old"]
    assert totals(store) == (1, 3, 0)


def test_a_callback_may_write_objects(store, objects, listening, container):
    def copy(tx, account, container, name, data):
        if name == "o":
            objects.put(tx, account, container, "copy", data)

    store.write(lambda tx: put(tx, listening(copy), "o", b"x"))
    assert contents(store, objects, "o", "copy") == [b"x", b"x"]


def test_containers_know_their_owner(store, objects):
    assert store.write(lambda tx: objects.create_container(tx, P, "a", owner="one")) is True
    assert store.write(lambda tx: objects.create_container(tx, P, "a", owner="two")) is False
    store.write(lambda tx: objects.create_container(tx, P, "b", {"x-versions-enabled": "true"}, owner="one"))
    store.write(lambda tx: objects.create_container(tx, P, "nobodys"))
    with store.read() as tx:
        owners = {name: containers.find(tx, P, name).owner for name in ("a", "b", "nobodys")}
    assert owners == {"a": "one", "b": "one", "nobodys": None}


def test_a_container_is_deleted_with_its_objects(store, objects):
    for name in ("c", "other"):
        store.write(lambda tx, n=name: objects.create_container(tx, P, n, {"x-versions-enabled": "true"}))
        for data in (b"1", b"2"):
            store.write(lambda tx, n=name, d=data: objects.put(tx, P, n, "o", d))
    for _ in range(2):
        store.write(lambda tx: objects.delete_container_and_all(tx, P, "c"))
    with store.read() as tx:
        assert tx.run(sa.select(schema.objects.c.container).distinct()).scalars().all() == ["other"]
        assert accounts.totals(tx, P).containers == 1


def test_a_temporary_url_of_stoker_is_valid():
    at = int(time.time()) + 60
    made = urlsplit(tempurl.url("http://h/object-store", "key", "PUT", P, "c", "a b/ü", at))
    assert made.path == f"/object-store/v1/AUTH_{P}/c/a%20b/%C3%BC"
    signed = tempurl.read({name: value for name, [value] in parse_qs(made.query).items()})
    paths = [f"/v1/AUTH_{P}/c/"]
    assert tempurl.allows(signed, "PUT", "a b/ü", paths, ["other", "key"], now=time.time())
    assert not tempurl.allows(signed, "GET", "a b/ü", paths, ["key"], now=time.time())
    assert not tempurl.allows(signed, "PUT", "a b", paths, ["key"], now=time.time())
    assert not tempurl.allows(signed, "PUT", "a b/ü", paths, ["other"], now=time.time())
    assert not tempurl.allows(signed, "PUT", "a b/ü", paths, ["key"], now=at + 1)


def test_signatures_equal_swifts():
    """Made once by python-swiftclient 4.11's generate_temp_url."""
    assert (
        tempurl.sign("key", "GET", "/v1/AUTH_a/c/o", 1_700_000_000)
        == "3e8f7b4bf6e1167c7d9bbba60658531687b31ef742e000dab8c2d7355cf70d82"
    )


def put_until(store, objects, at, name="o"):
    new = object_operations.New(account=P, container="c", name=name, data=b"data", delete_at=at)
    return store.write(lambda tx: object_operations.put(tx, objects.port, new))


def test_only_its_job_deletes_an_expired_object(store, objects, work, container):
    """A job that comes early, late, twice, or for what was overwritten meanwhile, takes nothing else."""
    with store.read() as tx:
        now = rows.to_micros(tx.now)
    put_until(store, objects, now + 3_600_000_000, "later")
    put_until(store, objects, now - 1_000_000, "gone")
    put_until(store, objects, now - 1_000_000, "again")
    store.write(lambda tx: objects.put(tx, P, "c", "again", b"stays"))
    assert len(work.jobs) == 3
    jobs = list(work.jobs)
    work.run(expiry.JOB)
    for _, _, args, _ in jobs:
        work.handlers[expiry.JOB](args)
    assert totals(store) == (2, 9, 0)
    assert contents(store, objects, "later", "again") == [b"data", b"stays"]


@pytest.mark.parametrize("headers", [{"x-versions-enabled": "true"}, {"x-versions-location": "old"}, {}])
def test_totals_match_the_contents(store, objects, work, headers):
    """Whatever is done, the columns say what counting would."""
    store.write(lambda tx: objects.create_container(tx, P, "old"))
    store.write(lambda tx: objects.create_container(tx, P, "c", headers))
    with store.read() as tx:
        past = rows.to_micros(tx.now) - 1_000_000
    for round in range(3):
        store.write(lambda tx: objects.put(tx, P, "c", "a", b"1" * 10))
        store.write(lambda tx, r=round: objects.put(tx, P, "c", f"b{r}", b"12"))
        put_until(store, objects, past, "a" if round else "e")
        store.write(lambda tx: objects.delete(tx, P, "c", "a"))
        store.write(lambda tx: objects.delete(tx, P, "c", "none"))
        store.write(lambda tx: objects.delete(tx, P, "c", "b0"))
        work.run(expiry.JOB)
        for name in ("c", "old"):
            assert totals(store, name) == counted(store, name)


def counted(store, name):
    found = schema.objects
    with store.read() as tx:
        all_of = tx.run(sa.select(found).where(found.c.container == name)).all()
    seen = [row for row in all_of if row.replaced_at is None and not row.marker]
    return (len(seen), sum(row.size for row in all_of), len(all_of) - len(seen))


def history(tx, container, name):
    """All contents of the name that are kept, the oldest first, versions or archive alike."""
    archive = container_operations.container(tx, P, container).archive
    if archive is None:
        lines = stored.versions(tx, P, container, Page(limit=1000, prefix=name))
        ids = [each.version or "null" for each in lines if each.name == name]
        return [object_operations.read(tx, P, container, name, id)[1] for id in reversed(ids)]
    lines = stored.page(tx, P, archive, Page(limit=1000, prefix=versions.archive_prefix(name)))
    now = stored.whole(tx, P, container, name, None)
    return [object_operations.read(tx, P, archive, each.name)[1] for each in lines] + ([] if now is None else [now[1]])


@pytest.mark.parametrize(
    "headers", [{"x-versions-enabled": "true"}, {"x-versions-location": "old"}, {"x-versions-location": "c"}]
)
def test_the_history_of_a_name_is_kept(store, objects, headers):
    """All that was written under it, in order, and nothing of another name's."""
    store.write(lambda tx: objects.create_container(tx, P, "old"))
    store.write(lambda tx: objects.create_container(tx, P, "c", headers))
    for number in range(12):
        for name in ("o", "o/2", "oo"):
            store.write(lambda tx, n=name, i=number: objects.put(tx, P, "c", n, f"{n}{i}".encode()))
    with store.read() as tx:
        assert history(tx, "c", "o") == [b"o%d" % number for number in range(12)]
        assert history(tx, "c", "none") == []
        with pytest.raises(EntityNotFound):
            history(tx, "none", "o")


def test_without_versioning_only_the_current_object_exists(store, objects, container):
    for data in (b"1", b"2"):
        store.write(lambda tx, d=data: objects.put(tx, P, "c", "o", d))
    with store.read() as tx:
        assert history(tx, "c", "o") == [b"2"]
