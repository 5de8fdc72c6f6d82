"""A stack to be read as a whole: everything its attributes are made of, in as many statements as there are tables."""

from __future__ import annotations

from stoker.model.stack import Stack
from stoker.stacks.engine import Engine
from stoker.stacks.transition import Transition
from stoker.store import configs, deployments, resources
from stoker.store.tx import Tx


def look_at(tx: Tx, engine: Engine, stack: Stack) -> Transition:
    """Once a reading transaction; where something may change, as it is now."""
    known = tx.seen.get(("stack", stack.id)) if tx.seen is not None else None
    if isinstance(known, Transition):
        return known
    transition = Transition(tx, engine, stack)
    present = resources.of_stack(tx, stack.id)
    transition.read_all(present)
    if tx.seen is not None:
        ids = [each.physical_id for each in present if each.physical_id]
        found = deployments.look_ahead(tx, ids)
        configs.look_ahead(tx, [*ids, *(each.config_id for each in found)])
        tx.seen["stack", stack.id] = transition
    return transition
