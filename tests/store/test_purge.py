"""Much is deleted in small transactions, between which others write, and which may end at any time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from stoker.store import rows, stacks
from stoker.store.purge import in_batches
from stoker.store.schema import events, snapshots
from stoker.store.schema import stacks as table
from support.stacks import world
from support.templates import template

#: Later than any of these tests.
NOW = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def gone(store):
    """Three deleted stacks with many events, and one that is there."""
    heat = world(store)
    kept = heat.create(template({"one": {"type": "OS::Heat::None"}}), "kept")
    for name in "abc":
        stack = heat.create(template({}), name)
        heat.delete(stack)
        store.write(lambda tx, id=stack.id: add_events(tx, id))
    return kept


def add_events(tx, stack_id):
    copied = dict(tx.run(sa.select(events).where(events.c.stack_id == stack_id)).mappings().first())
    del copied["seq"]
    tx.run(sa.insert(events), [{**copied, "id": f"{stack_id[:8]}-{n}"} for n in range(40)])
    snapshot = {"id": f"s-{stack_id}"[:64], "stack_id": stack_id, "name": "s", "status": "COMPLETE", "reason": ""}
    tx.run(sa.insert(snapshots), {**snapshot, "data": "{}", "created_at": rows.to_micros(NOW)})


def counts(store):
    with store.read() as tx:
        return [tx.run(sa.select(sa.func.count()).select_from(each)).scalar() for each in (table, events, snapshots)]


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
        assert {row.stack_id for row in tx.run(sa.select(events.c.stack_id))} == {gone.id}
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
    with store.read() as tx:
        assert stacks.count_gone(tx, NOW) == 3
    in_batches(store, lambda tx, most: stacks.purge(tx, NOW, most), batch=1000)
    assert counts(store)[0] == 1
