"""/v1/{project}/stacks/{name}/{id}/actions: suspend, resume, check and cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from stoker.http import audit_trail
from stoker.http.contracts import operation
from stoker.http.heat import stack_lookup
from stoker.http.request import RequestContext, Response
from stoker.model.errors import Invalid
from stoker.model.stack import Stack
from stoker.model.status import Action
from stoker.stacks import operations
from stoker.stacks.engine import Engine
from stoker.store.tx import Tx

ACTIONS: Mapping[str, Callable[[Tx, Engine, str], Stack]] = {
    "suspend": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.SUSPEND),
    "resume": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.RESUME),
    "check": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.CHECK),
    "cancel_update": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=True),
    "cancel_without_rollback": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=False),
}


#: The others cancel an operation.
_PLAIN = ("suspend", "resume", "check")


#: An object with the name of one action. Heat's clients send any value with it.
_SCHEMA = {
    "type": "object",
    "properties": {name: {} for name in ACTIONS},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
_StackAction = Annotated[dict[str, Any], Meta(extra_json_schema=_SCHEMA)]


@operation(200, type(None), errors=(409,), headers=(stack_lookup.OPERATION,), example={"check": None})
def act(request: RequestContext, tx: Tx, body: _StackAction) -> Response:
    """
    Run the action that the only member of the body names: suspend, resume or check a stack, or cancel its update.

    Raises Invalid, EntityNotFound or NotSupported.
    """
    names = list(body)
    if len(names) != 1:
        raise Invalid(f"one action is needed, not {len(names)}: {', '.join(ACTIONS)}")
    do = ACTIONS.get(names[0])
    if do is None:
        raise Invalid(f"Invalid action {names[0]}: known are {', '.join(ACTIONS)}")
    stack = stack_lookup.root_stack(tx, request)
    audit_trail.record(tx, request, f"{names[0]} stack" if names[0] in _PLAIN else "cancel stack")
    return Response(200, b"null", stack_lookup.operation_header(do(tx, request.app.engine, stack.id)))
