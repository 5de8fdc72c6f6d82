"""Much is deleted in small transactions, between which others write, and which may end at any time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from stoker.store import events as stored_events
from stoker.store import maintenance, rows, site, stacks
from stoker.store.maintenance import in_batches, reclaim
from support import query
from support.schema import TABLES
from support.stacks import world
from support.templates import template

#: Later than any of these tests.
NOW = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def gone(heat):
    """Three deleted stacks with many events, and one that is there."""
    kept = heat.create(template({"one": {"type": "OS::Heat::None"}}), "kept")
    for name in "abc":
        stack = heat.create(template({}), name)
        heat.delete(stack)
        heat.store.write(lambda tx, id=stack.id: add_events(tx, id))
    return kept


def add_events(tx, stack_id):
    copied = find_event(tx, stack_id)
    for number in range(40):
        query.insert(tx, "events", **{**copied, "id": f"{stack_id[:8]}-{number}"})
    snapshot = {"id": f"s-{stack_id}"[:64], "stack_id": stack_id, "name": "s", "status": "COMPLETE", "reason": ""}
    query.insert(tx, "snapshots", **snapshot, data="{}", created_at=rows.to_micros(NOW))


def find_event(tx, stack_id):
    """An event of the stack, as stored, without its position."""
    names = [name for name in TABLES["events"] if name != "seq"]
    text = f"SELECT {', '.join(names)} FROM events WHERE stack_id = :id LIMIT 1"
    return dict(zip(names, query.rows(tx, text, id=stack_id)[0], strict=True))


def counts(store):
    with store.read() as tx:
        return [query.count(tx, table) for table in ("stacks", "events", "snapshots")]


def test_a_purge_works_in_small_batches_between_other_writes(store, gone):
    sizes = []

    def delete(tx, most):
        rows_ = stacks.purge(tx, NOW, most)
        sizes.append(rows_)
        return rows_

    assert in_batches(store, delete, batch=10) == sum(sizes) > 120
    assert max(sizes) <= 2 * 10  # of two tables
    stacks_left, events_left, snapshots_left = counts(store)
    assert (stacks_left, snapshots_left) == (1, 0)
    with store.read() as tx:
        assert set(query.column(tx, "SELECT stack_id FROM events")) == {gone.id}
        assert events_left


def test_an_interrupted_purge_continues(store, gone):
    class KilledError(Exception):
        pass

    def delete(tx, most):
        if delete.left == 0:
            raise KilledError
        delete.left -= 1
        return stacks.purge(tx, NOW, most)

    delete.left = 3
    with pytest.raises(KilledError):
        in_batches(store, delete, batch=10)
    before = counts(store)
    assert before[0] == 4  # a stack goes last, so that what is left of it is found again
    in_batches(store, lambda tx, most: stacks.purge(tx, NOW, most), batch=1000)
    assert counts(store)[0] == 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_space_of_deleted_rows_is_returned_in_small_transactions_on_sqlite(store, monkeypatch):
    monkeypatch.setattr(maintenance, "_RESERVE_PAGES", 20)
    heat = world(store)
    stack = heat.create(template({}), "a")
    for _ in range(20):
        store.write(lambda tx: add_large_event(tx, stack.id))
    assert reclaim(store) == 0, "nothing was deleted yet"
    with store.read() as tx:
        full = site.read_sizes(tx)
    assert in_batches(store, lambda tx, most: stored_events.purge(tx, NOW, most)) >= 20
    freed = reclaim(store)
    with store.read() as tx:
        left = site.read_sizes(tx)
    assert freed > 200
    assert full.total_bytes - left.total_bytes == freed * 4096
    assert 0 < left.free_bytes <= max(20 * 4096, 0.1 * left.total_bytes)
    assert reclaim(store) == 0


def add_large_event(tx, stack_id):
    query.insert(tx, "events", **{**find_event(tx, stack_id), "id": str(uuid4()), "reason": "x" * 100_000})


def test_a_database_without_deletions_is_not_touched(store):
    assert reclaim(store) == 0


def test_table_sizes_cover_every_table(store, gone):
    with store.read() as tx:
        sizes = site.read_sizes(tx)
        assert sizes.dialect == tx.connection.dialect
    by_name = {size.name: size for size in sizes.tables}
    assert by_name.keys() == TABLES.keys()
    assert by_name["stacks"].rows == 4
    assert by_name["events"].rows > 120
    assert by_name["events"].table_bytes > by_name["artifacts"].table_bytes
    assert by_name["events"].index_bytes > 0
    assert sum(size.table_bytes + size.index_bytes for size in sizes.tables) <= sizes.total_bytes
