"""
/cfn/v1/signal/<ARN> and /cfn/v1/waitcondition/<ARN>: pre-signed URLs.

Each URL is signed with the key of its resource. It gives access to that resource only, until the resource is deleted.
"""

from __future__ import annotations

from typing import Any

from stoker.deployments.runs import log_unknown
from stoker.http.cfn.access import authenticate, check_signal, params_of
from stoker.http.cfn.serialize import element
from stoker.http.contracts import operation
from stoker.http.request import RequestContext, Response
from stoker.json_values import decode
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.ids import Arn
from stoker.stacks import signals
from stoker.store import stacks
from stoker.store.tx import Tx

_TYPES = ("", "application/json", "text/plain")


@operation(200)
def signal(request: RequestContext) -> Response:
    """Apply a signal to the resource that the path names."""
    _take(request, _details(request))
    return Response(200)


@operation(200)
def wait_condition(request: RequestContext) -> Response:
    """Apply a wait condition's signal and return the resource's name. The signal has Status, Reason, Data, UniqueId."""
    details = _details(request)
    if not details:
        raise Invalid("the body must be a JSON object with Status, Reason, Data and UniqueId")
    name = _take(request, details)
    return Response(200, element("resource", name).encode(), media_type="application/xml")


def _take(request: RequestContext, details: dict[str, Any]) -> str:
    """Authenticate the caller, apply the signal and return the resource's name."""
    params = params_of(request)
    signed = authenticate(request, params)
    arn = Arn.parse("{arn}/{stack_name}/{stack_id}/resources/{resource_name}".format_map(request.path))

    def do(tx: Tx) -> str:
        stack = stacks.find(tx, arn.stack_id)
        resource = signals.find_target(tx, stack, arn.resource or "", signed.caller.resource) if stack else None
        check_signal(signed.user, stack, resource)
        if stack is None or resource is None or arn.project_id != stack.project_id or arn.stack_name != stack.name:
            raise EntityNotFound.of("Resource", arn.resource or "")
        signals.deliver(tx, request.app.engine, resource, details, number=params.get("Run"))
        return resource.name

    with log_unknown(None, params.get("Run")):
        return request.write(do)


def _details(request: RequestContext) -> dict[str, Any]:
    """
    Return the signal's details, with Heat's rules.

    The body is JSON if its media type is JSON, or if it begins with a brace and its media type is plain text or
    missing. Any other body is ignored.
    """
    kind = request.media_type
    if kind not in _TYPES or not request.body.strip():
        return {}
    if kind != "application/json" and not request.body.lstrip().startswith(b"{"):
        return {}
    details = decode(request.body, "the request's body")
    if not isinstance(details, dict):
        raise Invalid("a signal's body must be a JSON object")
    return details
