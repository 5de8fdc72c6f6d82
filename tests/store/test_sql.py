"""Statements in plain SQL: one text for both databases."""

from __future__ import annotations

import pytest

from stoker.store import rows
from stoker.store.sql import FRAGMENTS, delete, insert, sql, update


def test_parameters_are_numbered_in_the_order_of_the_text():
    text = "SELECT a::int, ':no', \":no\" FROM t WHERE b = :b AND c = :c AND d > :b"
    numbered = "SELECT a::int, ':no', \":no\" FROM t WHERE b = $1 AND c = $2 AND d > $1"
    assert sql(text).postgresql == (numbered.encode(), ("b", "c"))
    assert sql(text).sqlite == (numbered.replace("$", "?"), ("b", "c"))


def test_fragments_are_what_the_databases_write_in_different_ways():
    text = "SELECT @position(substr(name, :start), '@in(ids)') FROM t WHERE id @in(ids) @for_update @skip_locked"
    assert sql(text).sqlite[0] == (
        "SELECT instr(substr(name, ?1), '@in(ids)') FROM t WHERE id IN (SELECT value FROM json_each(?2))"
    )
    assert sql(text).postgresql[0] == (
        b"SELECT strpos(substr(name, $1), '@in(ids)') FROM t"
        b" WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST($2 AS json)))) FOR UPDATE SKIP LOCKED"
    )
    with pytest.raises(KeyError):
        str(sql("SELECT 1 @other").sqlite)


def test_both_databases_have_the_same_fragments():
    assert FRAGMENTS["sqlite"].keys() == FRAGMENTS["postgresql"].keys()


def test_the_usual_statements():
    assert insert("configs", "id", "group").text == 'INSERT INTO configs (id, "group") VALUES (:id, :group)'
    assert update("steps", "state", key=("stack_id", "key")).text == (
        "UPDATE steps SET state = :state WHERE stack_id = :key_stack_id AND key = :key_key"
    )
    assert delete("steps", "stack_id").text == "DELETE FROM steps WHERE stack_id = :stack_id"


def test_lists_are_one_parameter(store):
    def do(tx):
        for seq, key in enumerate("abc"):
            tx.execute_fast(insert("jobs", "seq", "kind", "key", "args", "due", "attempts", "state"), job(seq, key))
        texts = {"keys": rows.dump(["a", "c"]), "seqs": rows.dump([0, 1])}
        assert tx.fetch_all(sql("SELECT key FROM jobs WHERE key @in(keys) ORDER BY key"), texts) == [("a",), ("c",)]
        numbers = sql("SELECT key FROM jobs WHERE NOT (seq @in_numbers(seqs)) ORDER BY key")
        assert tx.fetch_all(numbers, texts) == [("c",)]
        assert tx.fetch_all(sql("SELECT value FROM @each(keys) AS t"), texts) == [("a",), ("c",)]
        pairs = {"pairs": rows.dump({"a": 1, "b": 2})}
        of_pairs = sql(
            "SELECT jobs.key, CAST(pair.value AS bigint) FROM @each_pair(pairs) AS pair"
            " JOIN jobs ON jobs.key = pair.key ORDER BY 1"
        )
        assert tx.fetch_all(of_pairs, pairs) == [("a", 1), ("b", 2)]
        assert tx.change(sql("UPDATE jobs SET attempts = 1 WHERE key @in(keys)"), texts) == 2
        assert tx.change(delete("jobs", "key"), {"key": "none"}) == 0

    store.write(do)


def job(seq, key):
    return {"seq": seq, "kind": "k", "key": key, "args": "{}", "due": 0, "attempts": 0, "state": "WAITING"}
