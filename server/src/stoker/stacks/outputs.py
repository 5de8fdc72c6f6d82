"""
A stack's outputs, evaluated on request. An output that cannot be evaluated has an error and affects no other.

For all outputs and attributes, whole stacks are read with one statement per table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stoker import hot
from stoker.model.errors import EntityNotFound, StokerError
from stoker.model.stack import Resource, Stack
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import LiveScope, StackSession
from stoker.store import configs, deployments, documents, resources, servers, stacks
from stoker.store.tx import Tx

#: In ``Tx.cache``: the session of a stack, and the root of a tree that was read.
_SESSION, _TREE = "session of stack", "tree of stack"


def prime_stack(tx: Tx, engine: Engine, stack: Stack) -> StackSession:
    """Return a session that has read all resources of a stack; a read transaction keeps it for later calls."""
    session = tx.cache.get((_SESSION, stack.id))
    if isinstance(session, StackSession):
        return session
    session = StackSession(tx, engine, stack)
    present = session.resources.load_all()
    if tx.is_reading:
        _prime_details(tx, present)
        tx.cache[_SESSION, stack.id] = session
    return session


def prime_tree(tx: Tx, root_id: str) -> None:
    """In a read transaction, read the whole tree of a root stack: later reads of its stacks need no statement."""
    if tx.is_reading and (_TREE, root_id) not in tx.cache:
        tx.cache[_TREE, root_id] = True
        members = stacks.prime(tx, root_id)
        present = resources.prime(tx, [stack.id for stack in members])
        _prime_details(tx, present)
        documents.prime_bodies(tx, [resource.physical_id or resource.id for resource in present])


def _prime_details(tx: Tx, present: Iterable[Resource]) -> None:
    ids = [resource.physical_id or resource.id for resource in present]
    deployments.prime(tx, ids)
    runs = [deployment.config_id for id in ids if (deployment := deployments.find(tx, id))]
    configs.prime(tx, [*ids, *runs])
    servers.prime_facts(tx, ids)


#: Up to this number, outputs are evaluated one by one, so that a large stack need not be read for them.
_FEW = 3
#: Heat's text for an output without a description.
_NO_DESCRIPTION = "No description given"


def names(stack: Stack) -> list[dict[str, Any]]:
    """Return names and descriptions of all outputs, without values."""
    return [_named(name, output) for name, output in stack.outputs.items()]


def all_values(tx: Tx, engine: Engine, stack: Stack) -> list[dict[str, Any]]:
    """Return all outputs with values or errors."""
    if len(stack.outputs) <= _FEW and (_TREE, stack.root_id) not in tx.cache:
        scope = LiveScope(StackSession(tx, engine, stack))
    else:
        prime_tree(tx, stack.root_id)
        scope = LiveScope(prime_stack(tx, engine, stack))
    return [_value(name, output, scope) for name, output in stack.outputs.items()]


def one_value(tx: Tx, engine: Engine, stack: Stack, name: str) -> dict[str, Any]:
    """Return one output with its value or error. Raises EntityNotFound."""
    output = stack.outputs.get(name)
    if output is None:
        raise EntityNotFound(f"Specified output key {name} not found.")
    return _value(name, output, LiveScope(StackSession(tx, engine, stack)))


def _named(name: str, output: Mapping[str, Any]) -> dict[str, Any]:
    return {"output_key": name, "description": output.get("description") or _NO_DESCRIPTION}


def _value(name: str, output: Mapping[str, Any], scope: LiveScope) -> dict[str, Any]:
    shown = {**_named(name, output), "output_value": None}
    if "error" in output:
        return {**shown, "output_error": output["error"]}
    try:
        shown["output_value"] = hot.evaluate(output["value"], scope)
    except StokerError as error:
        shown["output_error"] = str(error)
    return shown
