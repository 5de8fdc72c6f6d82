"""Jobs of triggers and schedules, and the deletion of triggers that ended long ago."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stoker.model.trigger import TriggerStatus
from stoker.stacks.engine import Engine
from stoker.stacks.engine.progress import advance_resource
from stoker.store import triggers
from stoker.store.open import Store
from stoker.store.tx import Tx, TxCallbacks
from stoker.triggers import lifecycle, schedules
from stoker.types import label_groups, publishing

#: Deployments that one transaction deletes. Each gives its server's document a new revision, so the pauses also keep
#: the servers of a large trigger from polling at the same time.
_BATCH = 50
_PAUSE = 0.02


def purge(store: Store, engine: Engine, before: datetime) -> int:
    """Delete all triggers that ended before this time, and return their number."""
    count = 0
    while True:
        begun = time.monotonic()
        is_deleted = store.write(lambda tx: _delete_some(tx, engine, before), background=True, durable=False)
        if is_deleted is None:
            return count
        count += is_deleted
        time.sleep(max(_PAUSE, time.monotonic() - begun))


def _delete_some(tx: Tx, engine: Engine, before: datetime) -> bool | None:
    """Delete a part of one trigger. Return whether no part remains; None: no trigger is old enough."""
    id = triggers.find_ended(tx, before)
    if id is None:
        return None
    trigger = triggers.find(tx, id, for_update=True)
    if trigger is None or trigger.status == TriggerStatus.IN_PROGRESS:
        return False  # deleted or retried since
    lifecycle.delete_some(tx, engine.env, trigger, _BATCH)
    return triggers.find(tx, id) is None


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
    work.register(
        lifecycle.GO_ON, lambda args: store.write(lambda tx: continue_trigger(tx, engine, args), background=True)
    )
    work.register(
        lifecycle.REPLACE, lambda args: store.write(lambda tx: continue_replacement(tx, engine, args), background=True)
    )
    work.register(schedules.RUN, lambda args: schedules.run(store, engine, args))
    work.register(schedules.TIDY, lambda args: store.write(lambda tx: schedules.tidy(tx, engine, args)))


def continue_trigger(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: continue a trigger whose work exceeds one transaction."""
    trigger = triggers.find(tx, args["trigger_id"], for_update=True)
    if trigger is not None:
        lifecycle.go_on(tx, engine.env, trigger)


def continue_replacement(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: continue to replace the runs of a schedule's earlier trigger."""
    trigger = triggers.find(tx, args["trigger_id"], for_update=True)
    if trigger is not None:
        lifecycle.replace_waiting(tx, engine.env, trigger, args["newer_id"])
