"""What the two doors of the store promise, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest

from stoker.model.errors import Invalid, RequestLimitExceeded, Unavailable
from stoker.store import documents
from stoker.store import sqlite as sqlite_doors
from stoker.store.connection import UniqueViolation
from stoker.store.notifier import server_topic
from stoker.store.open import Store
from stoker.store.sql import insert, sql
from stoker.store.tx import Tx, check_limit
from support import databases, query
from support.blocking import HeldWrite
from support.concurrency import call_together
from support.notifications import Notified
from support.waiting import until

_ADD = insert("projects", "id", "name", "domain_id", "description", "enabled")
_GET = sql("SELECT description FROM projects WHERE id = :id")
_ALL = "SELECT id FROM projects ORDER BY id"
_SET = sql("UPDATE projects SET description = :description WHERE id = :id")


def add(tx: Tx, id: str, description: str = "") -> None:
    tx.execute_fast(_ADD, {"id": id, "name": id, "domain_id": "d", "description": description, "enabled": True})


def value(store: Store, id: str) -> str | None:
    with store.read() as tx:
        return tx.scalar(_GET, {"id": id})


def ids(store: Store) -> list[str]:
    with store.read() as tx:
        return query.column(tx, _ALL)


def outcome(act: Callable[[], Any]) -> Any:
    """Return what ``act`` returns or raises."""
    try:
        return act()
    except Exception as error:
        return error


def together(acts: list[Callable[[], Any]]) -> list[Any]:
    """Each in a thread of its own, all let go at once; what each returned or raised."""
    return call_together(len(acts), lambda n: outcome(acts[n]))


@contextmanager
def busy(store: Store) -> Iterator[None]:
    """The writer is held: on SQLite, all that is asked for meanwhile becomes one group."""
    held = HeldWrite(store, lambda _: None)
    try:
        yield
    finally:
        held.commit()


def as_one_group(store: Store, works: list[Callable[[Tx], Any]]) -> list[Any]:
    """Handed in while the writer is held, so that they are committed together."""
    with ThreadPoolExecutor(len(works)) as threads:
        with busy(store):
            writes = [threads.submit(outcome, partial(store.write, work)) for work in works]
            until(lambda: len(store._writer._waiting) == len(works))
        return [write.result() for write in writes]


@pytest.mark.parametrize("value", ["a" * 300, "nul \0", "surrogate \ud800", 2**63, -(2**63) - 1])
def test_a_value_that_the_database_cannot_store_is_invalid(store, value):
    """Values that pass all checks by mistake, in a write and in a query: an error of the request, not of Stoker."""
    name = "expires_at" if isinstance(value, int) else "hash"
    token = {"user_id": "u", "expires_at": 1, "issued_at": 1, "system": False, "methods": "[]", "hash": "h"}
    token[name] = value

    def execute(tx, method, statement):
        method(tx, statement, token)
        tx.send()
        raise Invalid("the database can store it")

    for statement in (insert("tokens", *token), sql(f"SELECT user_id FROM tokens WHERE {name} = :{name}")):
        for method in (Tx.execute_fast, Tx.put):
            with pytest.raises(Invalid):
                store.write(lambda tx, method=method, statement=statement: execute(tx, method, statement))
            with pytest.raises(Invalid), store.read() as tx:
                execute(tx, method, statement)
    assert store.write(lambda _: "next") == "next"


@pytest.fixture
def sqlite(tmp_path, sqlite_template) -> Iterator[Store]:
    opened = Store(databases.sqlite_url(tmp_path, sqlite_template))
    yield opened
    opened.close()


def test_a_write_transaction_without_statements_blocks_no_other(store):
    """Whether it ends well or not, and whoever is in its group."""
    assert store.write(lambda tx: "nothing") == "nothing"
    store.write(lambda tx: add(tx, "a"))
    with pytest.raises(ZeroDivisionError):
        store.write(lambda tx: 1 // 0)
    store.write(lambda tx: add(tx, "b"))
    assert ids(store) == ["a", "b"]


def test_a_failed_statement_rolls_back_the_transaction(store):
    store.write(lambda tx: add(tx, "a"))
    with pytest.raises(UniqueViolation):
        store.write(lambda tx: (add(tx, "b"), add(tx, "a")))
    assert ids(store) == ["a"]


def test_a_failed_transaction_of_a_group_fails_alone(sqlite):
    def work(n: int) -> Callable[[Tx], int]:
        def do(tx: Tx) -> int:
            add(tx, f"{n:02}")
            tx.bump_document(f"server {n}")
            if n % 3 == 0:
                raise ZeroDivisionError(n)
            if n % 3 == 1:
                add(tx, f"{n:02} again")
            return n

        return do

    notified = Notified(sqlite)
    outcomes = as_one_group(sqlite, [work(n) for n in range(12)])
    good = [n for n in range(12) if n % 3]
    assert [n for n, outcome in enumerate(outcomes) if outcome == n and type(outcome) is int] == good
    assert [outcome.args for n, outcome in enumerate(outcomes) if not n % 3] == [(0,), (3,), (6,), (9,)]
    assert [id for id in ids(sqlite) if "again" not in id] == [f"{n:02}" for n in good]
    assert sorted(topic for topic, _ in notified.all) == sorted(server_topic(f"server {n}") for n in good)


def count_commits(store: Store) -> list[str]:
    """A list to which each commit of the writer is added."""
    commits: list[str] = []
    store._writer._raw.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    return commits


@pytest.mark.parametrize(("seconds", "count"), [(None, 1), (0.0, 3)], ids=["short", "long"])
def test_a_group_is_one_commit_unless_it_is_long(sqlite, monkeypatch, seconds, count):
    if seconds is not None:
        monkeypatch.setattr(sqlite_doors, "_GROUP_SECONDS", seconds)
    commits = count_commits(sqlite)
    assert as_one_group(sqlite, [lambda tx, id=id: add(tx, id) for id in "abc"]) == [None] * 3
    assert ids(sqlite) == ["a", "b", "c"]
    assert len(commits) == 1 + count  # and of what held the writer


def test_transactions_of_a_group_see_earlier_successful_ones(sqlite):
    def count(tx: Tx) -> int:
        found = len(query.column(tx, _ALL))
        add(tx, f"{found}")
        return found

    def fails(tx: Tx) -> None:
        count(tx)
        raise ZeroDivisionError

    outcomes = as_one_group(sqlite, [count, fails, count, fails, count])
    assert sorted(each for each in outcomes if isinstance(each, int)) == [0, 1, 2]


@pytest.mark.parametrize("threads,each", [(8, 25)])
def test_racing_increments_are_all_counted(store, threads, each):
    store.write(lambda tx: add(tx, "a", "0"))

    def increment(tx: Tx) -> None:
        known = int(tx.scalar(_GET.for_update, {"id": "a"}))
        tx.execute_fast(_SET, {"id": "a", "description": str(known + 1)})

    def many() -> None:
        for _ in range(each):
            store.write(increment)

    assert together([many] * threads) == [None] * threads
    assert value(store, "a") == str(threads * each)


def test_a_deadlock_is_retried(postgresql_server):
    """For certain: both hold their first row before either asks for its second."""
    with databases.postgresql_url(postgresql_server) as url, closing(Store(url)) as store:
        for id in "ab":
            store.write(lambda tx, id=id: add(tx, id, "0"))
        met, tries = threading.Barrier(2), []

        def both(first: str, second: str) -> Callable[[], None]:
            def do(tx: Tx) -> None:
                tries.append(first)
                tx.scalar(_GET.for_update, {"id": first})
                if tries.count(first) == 1:
                    met.wait(60)
                tx.scalar(_GET.for_update, {"id": second})
                tx.execute_fast(_SET, {"id": first, "description": "done"})

            return lambda: store.write(do)

        assert together([both("a", "b"), both("b", "a")]) == [None, None]
        assert (value(store, "a"), value(store, "b")) == ("done", "done")
        assert len(tries) > 2


def test_a_write_inside_a_write_is_refused_and_one_in_a_read_transaction_not_stored(sqlite):
    with pytest.raises(RuntimeError):
        sqlite.write(lambda tx: sqlite.write(lambda tx: add(tx, "a")))
    assert ids(sqlite) == []
    sqlite.write(lambda tx: add(tx, "b"))
    assert ids(sqlite) == ["b"]
    with sqlite.read() as tx:
        add(tx, "a")
    sqlite.write(lambda tx: add(tx, "c"))
    assert ids(sqlite) == ["b", "c"]


def test_calls_after_the_commit_may_write_and_fail_without_their_caller(store):
    """What is called after the commit is outside of the transaction."""
    store.write(lambda tx: tx.after_commit(lambda: store.write(lambda tx: add(tx, "a"))))
    assert ids(store) == ["a"]

    seen = []

    def do(tx: Tx) -> str:
        tx.after_commit(lambda: 1 / 0)
        tx.after_commit(lambda: seen.append("the next"))
        add(tx, "stored")
        return "stored"

    assert store.write(do) == "stored"
    assert (seen, ids(store)) == (["the next"], ["a", "stored"])


def test_notifications_come_after_the_commit(store):
    seen: list[list[str]] = []
    store.notifier.subscribe(lambda *_: seen.append(ids(store)))

    def do(tx: Tx) -> None:
        tx.notify("topic")
        add(tx, "a")
        assert seen == []

    store.write(do)
    assert seen == [["a"]]


def test_a_rolled_back_transaction_has_no_effects(store):
    notified, after = Notified(store), []

    def fails(tx: Tx) -> None:
        add(tx, "a")
        tx.notify("topic")
        tx.bump_document("server")
        tx.after_commit(lambda: after.append("called"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(fails)
    store.write(lambda tx: (add(tx, "b"), tx.notify("later")))
    assert notified.all == [("later", 0)]
    assert after == []
    assert ids(store) == ["b"]
    with store.read() as tx:
        assert documents.revision(tx, "server") == 0


def test_a_bumped_document_gets_one_revision_per_transaction(store):
    notified = Notified(store)
    revisions = []
    for _ in range(2):
        store.write(lambda tx: [tx.bump_document(id) for id in ("b", "a", "b", "a", "a")] and None)
        with store.read() as tx:
            revisions.append([documents.revision(tx, id) for id in "abc"])
    first, second = revisions
    assert (first[0], second[0], first[2], second[2]) == (first[1], second[1], 0, 0)
    assert 0 < first[0] < second[0]
    assert sorted(notified.all) == [(server_topic(id), each[0]) for id in "ab" for each in revisions]


@pytest.mark.parametrize("names", ["a", "ab"])
def test_no_revision_of_a_document_recurs_after_a_restored_backup(store, names):
    """An agent that knows the revision would not get the other document."""

    def bump() -> int:
        store.write(lambda tx: [tx.bump_document(name) for name in names] and None)
        with store.read() as tx:
            return documents.revision(tx, "a")

    backup, lost = bump(), bump()
    store.write(lambda tx: query.change(tx, "UPDATE documents SET revision = :backup", backup=backup) and None)
    assert bump() > lost


def test_one_transaction_has_one_time(store):
    first, second = store.write(lambda tx: (tx.now, tx.now))
    assert first == second
    assert first.utcoffset().total_seconds() == 0


def test_a_reader_sees_one_snapshot_and_does_not_wait_for_a_writer(store):
    store.write(lambda tx: add(tx, "a", "before"))
    with store.read() as tx:
        assert tx.scalar(_GET, {"id": "a"}) == "before"
        store.write(lambda tx: tx.execute_fast(_SET, {"id": "a", "description": "after"}) and None)
        assert tx.scalar(_GET, {"id": "a"}) == "before"
    assert value(store, "a") == "after"
    with busy(store):
        assert value(store, "a") == "after"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)  # SQLite has none that break
def test_broken_connections_are_replaced(store):
    here = store
    here.write(lambda tx: add(tx, "a"))
    with here.session() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    here.write(lambda tx: add(tx, "b"))
    assert ids(here) == ["a", "b"]


def _fill_up(store: Store) -> int:
    """From now on the disk is full; the limit it had."""
    raw = store._writer._raw
    used = raw.execute("PRAGMA page_count").fetchone()[0]
    before = raw.execute("PRAGMA max_page_count").fetchone()[0]
    raw.execute(f"PRAGMA max_page_count = {used}")
    return int(before)


def test_background_writes_alternate_with_other_writes(sqlite):
    """Three of them and two short writes wait: the short ones wait for one part at most, and none is starved."""
    order: list[str] = []
    yields: list[bool] = []

    def long(n: int) -> Callable[[Tx], None]:
        def do(tx: Tx) -> None:
            order.append(f"long {n}")
            tx._begun -= 1  # it has lasted long
            yields.append(tx.should_yield)

        return do

    writes = [(long(n), True) for n in range(3)] + [(lambda _: order.append("short"), False) for _ in range(2)]
    with ThreadPoolExecutor(len(writes)) as threads, busy(sqlite):
        for do, background in writes:
            threads.submit(sqlite.write, do, background=background)
        until(lambda: len(sqlite._writer._waiting) + len(sqlite._writer._background) == len(writes))
    assert sorted(order) == ["long 0", "long 1", "long 2", "short", "short"]
    assert max(order.index("short"), 5 - 1 - order[::-1].index("short")) <= 2, order
    assert order[1:3] == ["short", "short"] or order[:2] == ["short", "short"]
    assert not any(yields[1:])  # nobody else waited by then


def test_a_long_transaction_should_yield_to_waiting_ones(sqlite):
    seen: list[bool] = []

    def long(tx: Tx) -> None:
        tx._begun -= 1
        seen.append(tx.should_yield)
        other.start()
        until(lambda: len(sqlite._writer._waiting) == 1)
        seen.append(tx.should_yield)

    other = threading.Thread(target=sqlite.write, args=(lambda _: None,))
    sqlite.write(long)
    other.join(60)
    assert seen == [False, True]


def test_a_full_disk_fails_every_transaction_of_the_group_and_is_survived(sqlite):
    before, notified = _fill_up(sqlite), Notified(sqlite)

    def tiny(n: int) -> Callable[[Tx], None]:
        return lambda tx: query.insert(tx, "assignments", user_id=str(n), project_id="p", role="r")

    large = [lambda tx: (tx.notify("t"), add(tx, "b", "x" * 1_000_000))]
    outcomes = as_one_group(sqlite, [tiny(1), *large, tiny(2)])
    with sqlite.read() as tx:
        there = set(query.column(tx, "SELECT user_id FROM assignments"))
    assert isinstance(outcomes[1], Unavailable)
    assert "full" in outcomes[1].message
    assert notified.all == []
    for n, outcome in ((1, outcomes[0]), (2, outcomes[2])):
        assert (outcome is None) == (str(n) in there)
        assert outcome is None or isinstance(outcome, Unavailable)
    sqlite._writer._raw.execute(f"PRAGMA max_page_count = {before}")
    sqlite.write(lambda tx: add(tx, "b", "x" * 1_000_000))
    assert ids(sqlite) == ["b"]


def test_a_transaction_that_hides_a_full_disk_loses_no_other_silently(sqlite):
    """SQLite gives up the whole transaction; no answer may say that anything of it is kept."""

    def hides(tx: Tx) -> None:
        query.change(tx, "ROLLBACK")  # what a full disk does to a transaction
        raise ZeroDivisionError

    outcomes = as_one_group(sqlite, [lambda tx: add(tx, "a"), hides, lambda tx: add(tx, "b")])
    there = ids(sqlite)
    assert isinstance(outcomes[1], ZeroDivisionError)
    for id, outcome in (("a", outcomes[0]), ("b", outcomes[2])):
        assert (outcome is None) == (id in there), outcome
    sqlite.write(lambda tx: add(tx, "c"))
    assert "c" in ids(sqlite)


def test_a_database_that_is_away_is_unavailable(tmp_path):
    with closing(Store("postgresql://nobody@127.0.0.1:1/none")) as store:
        with pytest.raises(Unavailable):
            store.write(lambda tx: add(tx, "a"))
        with pytest.raises(Unavailable), store.read():
            pass


def test_other_databases_are_refused():
    with pytest.raises(Invalid, match="mysql"):
        Store("mysql://localhost/stoker")


def test_a_transaction_that_breaks_a_constraint_at_the_commit_fails_alone(store):
    server = {
        "id": "server",
        "project_id": "p",
        "name": "web1",
        "kind": "ENROLLED",
        "resource_id": "no such resource",
        "key_generation": 1,
        "hooks": "[]",
        "labels": "{}",
        "stands_for": "{}",
        "created_at": 0,
    }

    def link(tx: Tx) -> None:
        query.insert(tx, "servers", **server)

    works = [link, lambda tx: add(tx, "a"), lambda tx: add(tx, "b")]
    if store.dialect == "sqlite":
        broken, *others = as_one_group(store, works)
    else:
        broken, *others = together([partial(store.write, work) for work in works])
    assert isinstance(broken, Exception)
    assert others == [None, None]
    assert ids(store) == ["a", "b"]
    with store.read() as tx:
        assert query.count(tx, "servers") == 0


def test_deferred_writes_keep_their_order(store):
    def do(tx: Tx) -> None:
        for id in "ab":
            tx.put(_SET, {"id": id, "description": "set before"})
            tx.put(_ADD, {"id": id, "name": id, "domain_id": "d", "description": "new", "enabled": True})
            tx.put(_SET, {"id": id, "description": "set after"})

    store.write(do)
    assert [value(store, id) for id in "ab"] == ["set after"] * 2


def test_concurrent_transactions_do_not_exceed_a_limit_together(store):
    def create(id: str) -> Callable[[], None]:
        def do(tx: Tx) -> None:
            check_limit(tx, "projects", "owner", 3, lambda: query.count(tx, "projects"))
            if store.dialect == "postgresql":
                query.scalar(tx, "SELECT pg_sleep(0.05)")
            add(tx, id)

        return lambda: store.write(do)

    outcomes = together([create(id) for id in "abcdef"])
    assert [type(outcome) for outcome in outcomes if outcome] == [RequestLimitExceeded] * 3
    assert len(ids(store)) == 3
