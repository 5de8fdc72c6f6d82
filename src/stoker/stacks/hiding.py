"""What nobody is to see of a stack: texts that hidden parameters hold, its own and those of the stacks around it."""

from __future__ import annotations

from stoker.hot import Parameters
from stoker.model.stack import Stack
from stoker.store import stacks
from stoker.store.tx import Tx


def secrets(tx: Tx, stack: Stack) -> tuple[str, ...]:
    """
    A value goes down into a nested stack as a parameter of its own, or as text of a template that a group wrote, and
    neither says that it was hidden.
    """
    found: dict[str, None] = {}
    around: Stack | None = stack
    while around is not None:
        if around.parameters.get("hidden"):
            found |= dict.fromkeys(Parameters.from_json(around.parameters).secrets())
        around = stacks.find(tx, around.parent_id) if around.parent_id else None
    return tuple(found)
