"""/v1/{project}/stacks/{name}/{id}/actions: what is done to a stack besides changing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import finding
from stoker.model.errors import Invalid
from stoker.model.status import Action
from stoker.stacks import operations
from stoker.stacks.engine import Engine
from stoker.store.tx import Tx

ACTIONS: Mapping[str, Callable[[Tx, Engine, str], object]] = {
    "suspend": lambda tx, engine, id: operations.visit(tx, engine, id, Action.SUSPEND),
    "resume": lambda tx, engine, id: operations.visit(tx, engine, id, Action.RESUME),
    "check": lambda tx, engine, id: operations.visit(tx, engine, id, Action.CHECK),
    "cancel_update": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=True),
    "cancel_without_rollback": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=False),
}


def act(call: Call) -> Reply:
    """The body has one key, the action's name; Heat's clients send any value with it."""
    said = list(reading.body(call))
    if len(said) != 1:
        raise Invalid(f"one action is needed, not {len(said)}: {', '.join(ACTIONS)}")
    do = ACTIONS.get(said[0])
    if do is None:
        raise Invalid(f"Invalid action {said[0]}: known are {', '.join(ACTIONS)}")

    def on_stack(tx: Tx) -> None:
        found = finding.stack(tx, call, live=True)
        finding.refuse_nested(found)
        do(tx, call.services.engine, found.id)

    call.services.store.write(on_stack)
    return Reply(200, b"null")
