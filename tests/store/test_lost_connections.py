"""Connections to PostgreSQL that break, or get no answer: transactions fail in time, and later ones succeed."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest
import sqlalchemy as sa

from stoker.model.errors import Unavailable
from stoker.store import connection_watchdog, notifications
from stoker.store.notifier import ALL
from stoker.store.open import Store
from support.faulty_line import faulty_line
from support.own_postgresql import own_postgresql

pytestmark = pytest.mark.slow

_SELECT = sa.text("SELECT 1")


@pytest.fixture(scope="module")
def postgresql():
    with own_postgresql() as server:
        yield server


@pytest.fixture
def line(postgresql):
    with faulty_line(postgresql.port) as line:
        yield line


@pytest.fixture
def store(postgresql, line):
    store = Store(postgresql.url_at(line.port))
    yield store
    line.resume()
    store.close()


def test_engines_limit_the_time_of_a_lost_network(store):
    with store.engine.connect() as connection:
        parameters = connection.connection.driver_connection.info.get_parameters()
    assert parameters["tcp_user_timeout"] == "10000"
    assert parameters["keepalives_idle"] == "5"


def test_locks_of_a_lost_connection_are_released(store, postgresql, line, monkeypatch):
    limits = [(version, text.replace(b"20s", b"1s")) for version, text in connection_watchdog._SESSION_LIMITS]
    monkeypatch.setattr(connection_watchdog, "_SESSION_LIMITS", limits)
    with psycopg.connect(postgresql.url, autocommit=True) as other:
        other.execute("CREATE TABLE IF NOT EXISTS numbers (n int)")
        other.execute("INSERT INTO numbers VALUES (1)")
        with pytest.raises(Unavailable), store.read() as tx:
            tx.run(sa.text("SELECT n FROM numbers FOR UPDATE"))
            line.hold()
            other.execute("UPDATE numbers SET n = 2")  # waits for the lock
            line.resume()
            tx.run(_SELECT)


def test_a_statement_without_an_answer_fails(store, line, monkeypatch):
    monkeypatch.setattr(connection_watchdog, "ANSWER_SECONDS", 1.0)
    with store.read() as tx:
        tx.run(_SELECT)
    line.hold()
    with pytest.raises(Unavailable), store.read() as tx:  # the pool's check of the idle connection waits
        tx.run(_SELECT)
        line.hold()
        tx.run(_SELECT)
    # Another connection serves the next transaction, although the network still keeps the first one.
    assert store.write(lambda tx: tx.run(_SELECT).scalar()) == 1


def test_a_long_transaction_with_answers_continues(store, monkeypatch):
    monkeypatch.setattr(connection_watchdog, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(connection_watchdog, "_TICK", 0.01)
    with store.read() as tx:
        for _ in range(3):
            tx.run(sa.text("SELECT pg_sleep(0.5)"))
        time.sleep(1.2)  # idle in a transaction: nothing is outstanding
        assert tx.run(_SELECT).scalar() == 1


def test_notifications_continue_after_a_half_open_connection(store, postgresql, line, monkeypatch):
    monkeypatch.setattr(notifications, "_ANSWER_SECONDS", 1.0)
    cleared = threading.Semaphore(0)
    store.notifier.subscribe(lambda topic, _: cleared.release() if topic == ALL else None)
    store.start_listener()
    assert cleared.acquire(timeout=60)
    line.hold()
    assert cleared.acquire(timeout=60)  # the listener has a new connection
    received = threading.Event()
    store.notifier.subscribe(lambda topic, _: received.set() if topic == "here" else None)
    payload = next(notifications.encode("another", {"here": 1}))
    with psycopg.connect(postgresql.url, autocommit=True) as other:
        other.execute("SELECT pg_notify('stoker', %s)", (payload,))
    assert received.wait(60)
    until = time.monotonic() + 60
    while any(store.notifier_problems().values()):
        assert time.monotonic() < until, store.notifier_problems()
        time.sleep(0.05)


def test_a_commit_whose_confirmation_is_lost_notifies_when_it_has_ended(store, postgresql, line, monkeypatch):
    """The transaction is stored after its connection was lost, and only then may caches be filled again."""
    monkeypatch.setattr(connection_watchdog, "_SESSION_LIMITS", ())  # the session outlives its connection
    with psycopg.connect(postgresql.url, autocommit=True) as other:
        for statement in _SLOW_COMMIT:
            other.execute(statement)
        rows = threading.Semaphore(0)

        def on_notification(topic: str, _: int) -> None:
            with psycopg.connect(postgresql.url) as reader:
                if topic == "topic" and reader.execute("SELECT n FROM slow").fetchone():
                    rows.release()

        store.notifier.subscribe(on_notification)
        failed = threading.Thread(target=_write_slowly, args=(store,))
        failed.start()
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while other.execute(waiting).fetchone() is None:
            assert failed.is_alive()
            time.sleep(0.02)
        line.cut()
        failed.join(60)
        assert not failed.is_alive()
        other.execute("SELECT pg_advisory_unlock(1)")
        assert rows.acquire(timeout=60)


#: A table whose transactions wait at their commit, as for a slow disk, until the lock is free.
_SLOW_COMMIT = (
    "CREATE TABLE slow (n int)",
    "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END'",
    "CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION wait()",
    "SELECT pg_advisory_lock(1)",
)


def _write_slowly(store: Store) -> None:
    with pytest.raises(Unavailable):
        store.write(lambda tx: (tx.run(sa.text("INSERT INTO slow VALUES (1)")), tx.notify("topic")))
