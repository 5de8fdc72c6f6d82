"""Jobs of triggers and schedules, and the deletion of triggers that ended long ago."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from stoker.model.trigger import TriggerStatus
from stoker.stacks.engine import Engine
from stoker.stacks.engine.progress import advance_resource
from stoker.store import triggers
from stoker.store.maintenance import in_batches
from stoker.store.open import Store
from stoker.store.tx import Tx, TxCallbacks
from stoker.triggers import lifecycle, schedules
from stoker.types import label_groups, publishing

#: Deployments that one transaction deletes. Each gives its server's document a new revision, so the pauses also keep
#: the servers of a large trigger from polling at the same time.
_BATCH = 50


def purge(store: Store, engine: Engine, before: datetime) -> int:
    """Delete all triggers that ended before this time, and return their number."""
    count = 0
    while (id := _find_ended(store, before)) is not None:
        in_batches(store, partial(_delete_some, engine=engine, id=id), _BATCH)
        count += 1
    return count


def _find_ended(store: Store, before: datetime) -> str | None:
    with store.read() as tx:
        return triggers.find_ended(tx, before)


def _delete_some(tx: Tx, most: int, engine: Engine, id: str) -> int:
    """Delete a part of one trigger. Return the number of deleted deployments; 0: no part remains."""
    trigger = triggers.find(tx, id, for_update=True)
    if trigger is None or trigger.status == TriggerStatus.IN_PROGRESS:
        return 0  # deleted or retried since
    return lifecycle.delete_some(tx, engine.env, trigger, most)


def register(store: Store, engine: Engine) -> None:
    """Register the handlers of all jobs of triggers and schedules, and the callbacks of the store to higher layers."""
    work = engine.env.work
    store.callbacks.bind(
        TxCallbacks(
            document_changed=lambda tx, server_id, resource_id: publishing.plan(tx, work, server_id, resource_id),
            servers_changed=lambda tx, changed: label_groups.servers_changed(tx, work, changed),
            resource_woken=lambda tx, id, wakes: advance_resource(tx, engine, id, wakes),
            trigger_woken=lambda tx, id, wakes: lifecycle.advance(tx, engine.env, id, wakes),
        )
    )

    def go_on(tx: Tx, args: Mapping[str, Any]) -> None:
        trigger = triggers.find(tx, args["trigger_id"], for_update=True)
        if trigger is not None:
            lifecycle.go_on(tx, engine.env, trigger)

    work.register(lifecycle.GO_ON, lambda args: store.write(lambda tx: go_on(tx, args), background=True))
    work.register(schedules.RUN, lambda args: schedules.run(store, engine, args))
    work.register(schedules.TIDY, lambda args: store.write(lambda tx: schedules.tidy(tx, engine, args)))
