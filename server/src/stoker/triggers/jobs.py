"""Jobs of triggers and schedules, and the deletion of triggers that ended long ago."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from stoker.stacks.engine import Engine
from stoker.stacks.engine.progress import advance_resource
from stoker.store import triggers
from stoker.store.open import Store
from stoker.store.tx import Tx, TxCallbacks
from stoker.triggers import lifecycle, schedules
from stoker.types import label_groups, publishing


def purge(store: Store, engine: Engine, before: datetime) -> int:
    """Delete all triggers that ended before this time, and return their number."""
    count = 0
    while (id := _find_ended(store, before)) is not None:
        lifecycle.purge(store, engine.env, id)
        count += 1
    return count


def _find_ended(store: Store, before: datetime) -> str | None:
    with store.read() as tx:
        return triggers.find_ended(tx, before)


def register(store: Store, engine: Engine) -> None:
    """Register the handlers of all jobs of triggers and schedules, and the callbacks of the store to higher layers."""
    work = engine.env.work
    store.callbacks.bind(
        TxCallbacks(
            document_changed=partial(publishing.plan, work=work),
            servers_changed=partial(label_groups.servers_changed, work=work),
            resource_woken=partial(advance_resource, engine=engine),
            trigger_woken=partial(lifecycle.advance, env=engine.env),
        )
    )

    def go_on(tx: Tx, args: Mapping[str, Any]) -> None:
        trigger = triggers.find(tx, args["trigger_id"], for_update=True)
        if trigger is not None:
            lifecycle.go_on(tx, engine.env, trigger)

    work.register(lifecycle.GO_ON, lambda args: store.write(lambda tx: go_on(tx, args), background=True))
    work.register(schedules.RUN, lambda args: schedules.run(store, engine, args))
    work.register(schedules.TIDY, lambda args: schedules.tidy(store, engine, args))
