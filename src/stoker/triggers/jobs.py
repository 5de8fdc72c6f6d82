"""Jobs of triggers and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.stacks.engine import Engine
from stoker.store import triggers
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.triggers import lifecycle, schedules


def register(store: Store, engine: Engine) -> None:
    """Register the handlers of all jobs of triggers and schedules."""
    work = engine.env.work
    work.register(
        lifecycle.GO_ON, lambda args: store.write(lambda tx: continue_trigger(tx, engine, args), background=True)
    )
    work.register(schedules.RUN, lambda args: schedules.run(store, engine, args))
    work.register(schedules.TIDY, lambda args: store.write(lambda tx: schedules.tidy(tx, engine, args)))


def continue_trigger(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: continue a trigger whose work exceeds one transaction."""
    trigger = triggers.find(tx, args["trigger_id"], for_update=True)
    if trigger is not None:
        lifecycle.go_on(tx, engine.env, trigger)
