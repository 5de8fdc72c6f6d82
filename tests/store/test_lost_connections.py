"""Connections to PostgreSQL that break, or get no answer: transactions fail in time, and later ones succeed."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import psycopg
import pytest

from stoker.model.errors import Unavailable
from stoker.store import notifications, pipeline
from stoker.store.open import Store
from support import query
from support.faulty_line import faulty_line
from support.own_postgresql import own_postgresql
from support.waiting import until

pytestmark = pytest.mark.slow

_SELECT = "SELECT 1"


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


def test_connections_limit_the_time_of_a_lost_network(store):
    with store.pool.connection() as connection:
        parameters = connection.driver.info.get_parameters()
    assert parameters["tcp_user_timeout"] == "10000"
    assert parameters["keepalives_idle"] == "5"


def test_locks_of_a_lost_connection_are_released(store, postgresql, line, monkeypatch):
    limits = [(version, text.replace(b"20s", b"1s")) for version, text in pipeline._SESSION_LIMITS]
    monkeypatch.setattr(pipeline, "_SESSION_LIMITS", limits)
    with psycopg.connect(postgresql.url, autocommit=True) as other:
        other.execute("CREATE TABLE IF NOT EXISTS numbers (n int)")
        other.execute("INSERT INTO numbers VALUES (1)")
        with pytest.raises(Unavailable), store.read() as tx:
            query.scalar(tx, "SELECT n FROM numbers FOR UPDATE")
            line.hold()
            other.execute("UPDATE numbers SET n = 2")  # waits for the lock
            line.resume()
            query.scalar(tx, _SELECT)


def set_limit(store: Store, seconds: float) -> None:
    """Limit the time of the statements of the connection that the next transaction uses."""
    with store.pool.connection() as connection:
        connection.pipeline.answer_seconds = seconds


def test_a_statement_without_an_answer_fails(store, line):
    set_limit(store, 1.0)
    with pytest.raises(Unavailable), store.read() as tx:
        query.scalar(tx, _SELECT)
        line.hold()
        query.scalar(tx, _SELECT)
    # Another connection serves the next transaction, although the network still keeps the first one.
    assert store.write(lambda tx: query.scalar(tx, _SELECT)) == 1


def test_an_idle_connection_without_an_answer_is_replaced(store, line, monkeypatch):
    monkeypatch.setattr("stoker.store.postgresql._IDLE_SECONDS", 0.0)
    set_limit(store, 1.0)
    line.hold()
    assert store.write(lambda tx: query.scalar(tx, _SELECT)) == 1


def test_a_long_transaction_with_answers_continues(store):
    set_limit(store, 4.0)  # far longer than an answer takes on a busy machine
    with store.read() as tx:
        for _ in range(3):
            query.scalar(tx, "SELECT pg_sleep(1.5)")
        time.sleep(4.2)  # idle in a transaction: nothing is outstanding
        assert query.scalar(tx, _SELECT) == 1


def test_notifications_continue_after_a_half_open_connection(store, postgresql, line, monkeypatch):
    monkeypatch.setattr(notifications, "_ANSWER_SECONDS", 1.0)
    received = threading.Event()
    store.notifier.subscribe(lambda topics: received.set() if "here" in topics else None)
    store.start_listener()
    line.hold()
    payload = next(notifications.encode("another", {"here": 1}))
    with psycopg.connect(postgresql.url, autocommit=True) as other:

        def arrives() -> bool:
            other.execute("SELECT pg_notify('stoker', %s)", (payload,))
            return received.wait(0.1)

        until(arrives)  # by a new connection of the listener
    until(lambda: not any(store.notifier_problems().values()), explain=lambda: str(store.notifier_problems()))


def test_a_commit_whose_confirmation_is_lost_notifies_when_it_has_ended(store, postgresql, line, monkeypatch):
    """The transaction is stored after its connection was lost, and only then may caches be filled again."""
    monkeypatch.setattr(pipeline, "_SESSION_LIMITS", ())  # the session outlives its connection
    with psycopg.connect(postgresql.url, autocommit=True) as other:
        for statement in _SLOW_COMMIT:
            other.execute(statement)
        rows = threading.Semaphore(0)

        def on_notification(notifications: Mapping[str, int]) -> None:
            with psycopg.connect(postgresql.url) as reader:
                if "topic" in notifications and reader.execute("SELECT n FROM slow").fetchone():
                    rows.release()

        store.notifier.subscribe(on_notification)
        failed = threading.Thread(target=_write_slowly, args=(store,))
        failed.start()
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: other.execute(waiting).fetchone())
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
        store.write(lambda tx: (query.change(tx, "INSERT INTO slow VALUES (1)"), tx.notify("topic")))
