"""/v1/{project}/stacks/{name}/{id}/actions: suspend, resume, check and cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stoker.http import params
from stoker.http.heat import stack_lookup
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Invalid
from stoker.model.status import Action
from stoker.stacks import operations
from stoker.stacks.engine import Engine
from stoker.store.tx import Tx

ACTIONS: Mapping[str, Callable[[Tx, Engine, str], object]] = {
    "suspend": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.SUSPEND),
    "resume": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.RESUME),
    "check": lambda tx, engine, id: operations.run_action(tx, engine, id, Action.CHECK),
    "cancel_update": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=True),
    "cancel_without_rollback": lambda tx, engine, id: operations.cancel(tx, engine, id, rollback=False),
}


def act(request: RequestContext) -> Response:
    """
    Run the action that the only key of the body names. Heat's clients send arbitrary values with it.

    Raises Invalid, EntityNotFound or NotSupported.
    """
    said = list(params.body(request))
    if len(said) != 1:
        raise Invalid(f"one action is needed, not {len(said)}: {', '.join(ACTIONS)}")
    do = ACTIONS.get(said[0])
    if do is None:
        raise Invalid(f"Invalid action {said[0]}: known are {', '.join(ACTIONS)}")

    def on_stack(tx: Tx) -> None:
        found = stack_lookup.stack(tx, request, live=True)
        stack_lookup.refuse_nested(found)
        do(tx, request.app.engine, found.id)

    request.app.store.write(on_stack)
    return Response(200, b"null")
