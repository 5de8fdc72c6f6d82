"""A stack's outputs, resolved when asked for; one that cannot be resolved says why and spoils no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import hot
from stoker.model.errors import EntityNotFound, StokerError
from stoker.model.stack import Stack
from stoker.stacks.engine import Engine
from stoker.stacks.looking import is_known, look_ahead, look_at
from stoker.stacks.scope import LiveScope
from stoker.stacks.transition import Transition
from stoker.store.tx import Tx

#: So many outputs are read one by one: a large stack need not be read for them.
_FEW = 3
#: Heat's words for an output that describes nothing.
_NO_DESCRIPTION = "No description given"


def names(stack: Stack) -> list[dict[str, Any]]:
    return [_named(name, output) for name, output in stack.outputs.items()]


def all_values(tx: Tx, engine: Engine, stack: Stack) -> list[dict[str, Any]]:
    if len(stack.outputs) <= _FEW and not is_known(tx, stack):
        scope = LiveScope(Transition(tx, engine, stack))
    else:
        look_ahead(tx, [stack.root_id])
        scope = LiveScope(look_at(tx, engine, stack))
    return [_value(name, output, scope) for name, output in stack.outputs.items()]


def one_value(tx: Tx, engine: Engine, stack: Stack, name: str) -> dict[str, Any]:
    """Raises EntityNotFound."""
    output = stack.outputs.get(name)
    if output is None:
        raise EntityNotFound(f"Specified output key {name} not found.")
    return _value(name, output, LiveScope(Transition(tx, engine, stack)))


def _named(name: str, output: Mapping[str, Any]) -> dict[str, Any]:
    return {"output_key": name, "description": output.get("description") or _NO_DESCRIPTION}


def _value(name: str, output: Mapping[str, Any], scope: LiveScope) -> dict[str, Any]:
    said = {**_named(name, output), "output_value": None}
    try:
        said["output_value"] = hot.evaluate(output["value"], scope)
    except StokerError as error:
        said["output_error"] = str(error)
    return said
