"""Round trips to PostgreSQL: what a batch contains, and what remains of the connection after an error."""

from __future__ import annotations

import psycopg
import pytest

from stoker.store import pipeline as pipelines
from stoker.store.pipeline import DEFAULT, PREPARED_AFTER, REPEATABLE_READ, Pipeline
from support import databases

pytestmark = pytest.mark.slow


@pytest.fixture
def connection(postgresql_server):
    with (
        databases.postgresql_url(postgresql_server) as url,
        psycopg.connect(pipelines.conninfo(url)) as connection,
    ):
        Pipeline(connection).run([(b"CREATE TABLE numbers (n int PRIMARY KEY, text varchar)", ())], commits=True)
        yield connection


@pytest.fixture
def pipeline(connection):
    return Pipeline(connection)


def insert(n: int, text: str = "") -> tuple[bytes, tuple[int, str]]:
    return b"INSERT INTO numbers VALUES ($1::INTEGER, $2::VARCHAR)", (n, text)


def numbers(connection) -> list[int]:
    found = [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]
    connection.rollback()
    return found


def prepared(connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM pg_prepared_statements", prepare=False)}


def test_a_batch_returns_the_rows_of_its_last_query(pipeline, connection):
    rows = pipeline.run([insert(1, "one"), insert(2), (b"SELECT n, text FROM numbers ORDER BY n", ())])
    assert rows == [(1, "one"), (2, "")]
    assert pipeline.run([(b"SELECT 1 WHERE false", ())]) == []
    assert list(pipeline.run([insert(3)])) == []
    connection.rollback()
    assert numbers(connection) == []


def test_commit_ends_the_transaction_in_the_same_batch(pipeline, connection):
    assert not pipeline.is_in_transaction
    pipeline.run([insert(1)])
    assert pipeline.is_in_transaction
    assert list(pipeline.run([insert(2)], commits=True)) == []
    assert not pipeline.is_in_transaction
    connection.rollback()
    assert numbers(connection) == [1, 2]
    pipeline.run([], commits=True)  # nothing has begun
    pipeline.run([insert(3)])
    pipeline.run([], commits=True)
    assert numbers(connection) == [1, 2, 3]
    assert pipeline.run([insert(4), (b"SELECT count(*) FROM numbers", ())], commits=True) == [(4,)]
    assert not pipeline.is_in_transaction


def test_a_transaction_has_the_isolation_level_of_the_pipeline(pipeline, connection):
    pipeline.isolation = REPEATABLE_READ
    assert pipeline.run([(b"SHOW transaction_isolation", ())]) == [("repeatable read",)]
    connection.rollback()
    pipeline.isolation = DEFAULT
    assert pipeline.run([(b"SHOW transaction_isolation", ())]) == [("read committed",)]


@pytest.mark.parametrize("commits", [False, True])
def test_an_error_is_that_of_the_query_and_nothing_after_it_is_executed(pipeline, connection, commits):
    pipeline.run([insert(1)], commits=True)
    with pytest.raises(psycopg.errors.UniqueViolation, match="numbers_pkey"):
        pipeline.run([insert(2), insert(1), insert(3)], commits=commits)
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        pipeline.run([insert(4)])
    connection.rollback()
    assert numbers(connection) == [1]
    pipeline.run([insert(2)], commits=True)
    assert numbers(connection) == [1, 2]


def test_a_value_that_cannot_be_sent_changes_nothing(pipeline, connection):
    with pytest.raises(psycopg.DataError, match="NUL"):
        pipeline.run([insert(1), insert(2, "\0")])
    pipeline.run([insert(3)], commits=True)
    assert numbers(connection) == [3]


def test_repeated_statements_are_prepared(pipeline, connection):
    for n in range(PREPARED_AFTER):
        pipeline.run([insert(n)])
        assert prepared(connection) == set()
    pipeline.run([insert(n) for n in range(10, 13)])
    assert prepared(connection) == {"stoker_1"}
    with pytest.raises(psycopg.errors.UniqueViolation):
        pipeline.run([insert(1)])
    connection.rollback()
    pipeline.run([insert(1)])
    assert prepared(connection) == {"stoker_1"}


def test_a_statement_that_fails_is_not_believed_to_be_prepared(pipeline, connection):
    wrong = (b"SELECT 1 / $1::INTEGER FROM missing", (1,))
    for _ in range(PREPARED_AFTER + 2):
        with pytest.raises(psycopg.errors.UndefinedTable):
            pipeline.run([wrong])
        connection.rollback()
    connection.execute("CREATE TABLE missing AS SELECT 1")
    assert pipeline.run([wrong]) == [(1,)]


def test_the_statement_that_was_not_used_for_longest_is_forgotten(pipeline, connection, monkeypatch):
    monkeypatch.setattr(pipelines, "PREPARED_AFTER", 0)
    monkeypatch.setattr(pipelines, "MOST_PREPARED", 2)
    first, second, third = ((b"SELECT %d + $1::INTEGER" % n, (n,)) for n in range(3))
    for query in (first, second, first, third, first):
        assert pipeline.run([query]) == [(2 * query[1][0],)]
    assert prepared(connection) == {"stoker_1", "stoker_3"}
    assert pipeline.run([second]) == [(2,)]
    assert prepared(connection) == {"stoker_1", "stoker_4"}


def test_a_rollback_forgets_no_prepared_statement(pipeline, connection):
    for n in range(2 * PREPARED_AFTER):
        connection.execute("SELECT %s", [n])
        assert pipeline.run([(b"SELECT $1::INTEGER", (n,))]) == [(n,)]
        connection.rollback()
    assert prepared(connection) == {"stoker_1"}


def test_behind_a_pooler_nothing_is_prepared(connection):
    pipeline = Pipeline(connection)
    pipeline.prepares = False
    for n in range(2 * PREPARED_AFTER):
        pipeline.run([insert(n)])
    assert prepared(connection) == set()


def test_a_large_batch_does_not_wait_for_itself(pipeline):
    """Both directions exceed what the sockets store."""
    text = "x" * 10_000
    rows = pipeline.run([(b"SELECT $1::VARCHAR || $2::VARCHAR", (text, str(n))) for n in range(2_000)])
    assert rows == [(f"{text}1999",)]


def test_a_session_that_postgresql_ends_is_lost(pipeline, connection, postgresql_server):
    pipeline.run([insert(1)])
    with psycopg.connect(postgresql_server, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        pipeline.run([insert(2)])
    assert connection.closed


def test_an_interrupted_batch_closes_the_connection(pipeline, connection, monkeypatch):
    class Interrupted:
        def poll(self, _):
            raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "_readable", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        pipeline.run([insert(1), (b"SELECT pg_sleep(0.2)", ())])
    assert connection.closed


def test_a_batch_without_an_answer_in_time_closes_the_connection(pipeline, connection):
    pipeline.answer_seconds = 0.2
    with pytest.raises(psycopg.OperationalError, match="has not answered for"):
        pipeline.run([(b"SELECT pg_sleep(300)", ())])
    assert connection.closed


def test_a_rollback_ends_a_transaction_also_after_an_error(pipeline, connection):
    pipeline.rollback()
    pipeline.run([insert(1)])
    with pytest.raises(psycopg.errors.UniqueViolation):
        pipeline.run([insert(1)])
    pipeline.rollback()
    assert not pipeline.is_in_transaction
    assert numbers(connection) == []
