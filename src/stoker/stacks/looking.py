"""A stack to be read as a whole: everything its attributes are made of, in as many statements as there are tables."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.model.stack import Resource, Stack
from stoker.stacks.engine import Engine
from stoker.stacks.transition import Transition
from stoker.store import configs, deployments, resources, stacks
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
        _look_behind(tx, present)
        tx.seen["stack", stack.id] = transition
    return transition


def look_ahead(tx: Tx, roots: Iterable[str]) -> None:
    """
    Whole trees, by the stacks at their tops: what is asked next of stacks in them costs no statement each.

    Only when reading; nothing may change meanwhile.
    """
    if tx.seen is not None:
        unknown = {id for id in roots if ("tree", id) not in tx.seen}
        tx.seen |= {("tree", id): True for id in unknown}
        found = stacks.look_ahead(tx, unknown)
        present = resources.look_ahead(tx, [each.id for each in found])
        _look_behind(tx, present)
        deployments.expect(tx, [each.physical_id or each.id for each in present])


def is_known(tx: Tx, stack: Stack) -> bool:
    """Whether that has been done for the tree that the stack is in."""
    return tx.seen is not None and ("tree", stack.root_id) in tx.seen


def _look_behind(tx: Tx, present: Iterable[Resource]) -> None:
    """The deployments and configs that these are."""
    ids = [each.physical_id for each in present if each.physical_id]
    found = deployments.look_ahead(tx, ids)
    configs.look_ahead(tx, [*ids, *(each.config_id for each in found)])
