"""Reads whole stacks with one statement per table, for all attributes and outputs."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.model.stack import Resource, Stack
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.store import configs, deployments, resources, server_facts, stacks
from stoker.store.tx import Tx


def prefetch_stack(tx: Tx, engine: Engine, stack: Stack) -> StackSession:
    """
    Return a session that has read all resources of a stack.

    A read transaction keeps the session for later calls. In a write transaction, each call reads the current state.
    """
    prefetched = tx.prefetched.get(("stack", stack.id)) if tx.prefetched is not None else None
    if isinstance(prefetched, StackSession):
        return prefetched
    session = StackSession(tx, engine, stack)
    present = resources.of_stack(tx, stack.id)
    session.resources.preload(present)
    if tx.prefetched is not None:
        _prefetch_details(tx, present)
        tx.prefetched["stack", stack.id] = session
    return session


def prefetch_trees(tx: Tx, roots: Iterable[str]) -> None:
    """
    Read whole trees of stacks, by the ids of their roots, so that later reads of these stacks need no statement each.

    Does nothing in a write transaction, where the data may change.
    """
    if tx.prefetched is not None:
        unknown = {id for id in roots if ("tree", id) not in tx.prefetched}
        tx.prefetched |= {("tree", id): True for id in unknown}
        members = stacks.prefetch(tx, unknown)
        present = resources.prefetch(tx, [stack.id for stack in members])
        _prefetch_details(tx, present)
        deployments.prefetch_bodies(tx, [resource.physical_id or resource.id for resource in present])


def is_prefetched(tx: Tx, stack: Stack) -> bool:
    """Return whether the tree of the stack has been prefetched."""
    return tx.prefetched is not None and ("tree", stack.root_id) in tx.prefetched


def _prefetch_details(tx: Tx, present: Iterable[Resource]) -> None:
    """Read the deployments and configs of the resources, and the facts of servers."""
    ids = [resource.physical_id or resource.id for resource in present]
    prefetched = deployments.prefetch(tx, ids)
    configs.prefetch(tx, [*ids, *(deployment.config_id for deployment in prefetched)])
    server_facts.prefetch(tx, ids)
