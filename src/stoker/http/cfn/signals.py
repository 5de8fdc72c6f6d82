"""
/cfn/v1/signal/<ARN> and /cfn/v1/waitcondition/<ARN>: pre-signed URLs.

Each is signed with the key of the resource that it is for and reaches nothing else, for as long as that is there.
"""

from __future__ import annotations

from typing import Any

from stoker.http.call import Call, Reply
from stoker.http.cfn.asking import params_of, signer
from stoker.http.cfn.serialize import Refused, element, refusal
from stoker.http.decoding import decoded
from stoker.model.arn import Arn
from stoker.model.errors import EntityNotFound, Forbidden, Invalid, StokerError
from stoker.model.principal import Principal
from stoker.stacks import signals
from stoker.store import stacks
from stoker.store.tx import Tx

_TYPES = ("", "application/json", "text/plain")


def signal(call: Call) -> Reply:
    try:
        _take(call, _details(call))
    except (StokerError, Refused) as error:
        return refusal(error, as_json=False)
    return Reply(200)


def wait_condition(call: Call) -> Reply:
    try:
        details = _details(call)
        if not details:
            raise Invalid("the body must be a JSON object with Status, Reason, Data and UniqueId")
        name = _take(call, details)
    except (StokerError, Refused) as error:
        return refusal(error, as_json=False)
    return Reply(200, element("resource", name).encode(), media_type="application/xml")


def _take(call: Call, details: dict[str, Any]) -> str:
    """The resource's name."""
    params = params_of(call)
    principal = signer(call, params)
    arn = Arn.parse("{arn}/{stack_name}/{stack_id}/resources/{resource_name}".format_map(call.path))

    def do(tx: Tx) -> str:
        stack = stacks.find(tx, arn.stack_id)
        found = signals.addressed(tx, stack, arn.resource or "", principal.resource_id) if stack else None
        _may(principal, None if found is None else found.id, None if stack is None else stack.project_id)
        if stack is None or found is None or arn.project_id != stack.project_id or arn.stack_name != stack.name:
            raise EntityNotFound.of("Resource", arn.resource or "")
        if params.get("Run") not in (None, str(found.data.get("runs"))):
            return found.name  # late, of an earlier run: it changes nothing
        signals.signal_resource(tx, call.services.engine, stack, found, details)
        return found.name

    return call.services.store.write(do)


def _may(principal: Principal, resource_id: str | None, project_id: str | None) -> None:
    """Raises Forbidden, the same for what is not there and for what is not the signer's."""
    if principal.resource_id is not None:
        right = principal.resource_id == resource_id
    else:
        right = project_id == principal.project_id
    if not right:
        raise Forbidden("You are not authorized to complete this action.")


def _details(call: Call) -> dict[str, Any]:
    """As Heat reads it: JSON if it says so, or says nothing and begins like it."""
    kind = call.media_type
    if kind not in _TYPES or not call.body.strip():
        return {}
    if kind != "application/json" and not call.body.lstrip().startswith(b"{"):
        return {}
    said = decoded(call.body, "the request's body")
    if not isinstance(said, dict):
        raise Invalid("a signal's body must be a JSON object")
    return said
