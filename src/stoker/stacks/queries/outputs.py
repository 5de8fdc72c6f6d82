"""A stack's outputs, evaluated on request. An output that cannot be evaluated has an error and affects no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import hot
from stoker.model.errors import EntityNotFound, StokerError
from stoker.model.stack import Stack
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.stacks.queries.prefetch import is_prefetched, prefetch_stack, prefetch_trees
from stoker.stacks.templates.scope import LiveScope
from stoker.store.tx import Tx

#: Up to this number, outputs are evaluated one by one, so that a large stack need not be read for them.
_FEW = 3
#: Heat's text for an output without a description.
_NO_DESCRIPTION = "No description given"


def names(stack: Stack) -> list[dict[str, Any]]:
    """Return names and descriptions of all outputs, without values."""
    return [_named(name, output) for name, output in stack.outputs.items()]


def all_values(tx: Tx, engine: Engine, stack: Stack) -> list[dict[str, Any]]:
    """Return all outputs with values or errors."""
    if len(stack.outputs) <= _FEW and not is_prefetched(tx, stack):
        scope = LiveScope(StackSession(tx, engine, stack))
    else:
        prefetch_trees(tx, [stack.root_id])
        scope = LiveScope(prefetch_stack(tx, engine, stack))
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
