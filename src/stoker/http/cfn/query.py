"""/cfn/v1/?Action=…: CloudFormation's query API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from stoker.http.access import AGENT, MEMBER, READER, only_reads
from stoker.http.cfn import reads, writes
from stoker.http.cfn.access import CfnAction
from stoker.http.cfn.request import CfnRequest, authenticate, params_of
from stoker.http.cfn.serialize import Refused, answer, refusal
from stoker.http.client_address import client_address
from stoker.http.contracts import operation
from stoker.http.decoders import convert
from stoker.http.fields import Query
from stoker.http.request_context import RequestContext, Response, without_credentials
from stoker.http.threads import HANDLERS, TEMPLATES, Executor
from stoker.model.errors import DeploymentRefused, StokerError, TooManyRequests
from stoker.model.stack import Resource, Stack
from stoker.policy import authorizer


@dataclass(frozen=True, slots=True)
class _Action:
    do: Callable[[CfnRequest, Any], Any]
    access: CfnAction
    executor: Executor = HANDLERS
    #: The type of the action's parameters.
    kind: type[Query] = field(init=False)

    def __post_init__(self) -> None:
        _, kind, _ = get_type_hints(self.do).values()
        object.__setattr__(self, "kind", kind)

    def decode(self, params: Mapping[str, str]) -> Query:
        """Return the action's parameters. Empty ones count as missing. Raises Refused or Invalid."""
        values = {name: value for name, value in params.items() if value}
        for member in msgspec.structs.fields(self.kind):
            if member.required and member.encode_name not in values:
                raise Refused(400, "MissingParameter", f"{member.encode_name} parameter is missing")
        decoded: Query = convert(values, self.kind, "the request")
        return decoded


_READ, _WRITE = CfnAction(READER), CfnAction(MEMBER)
ACTIONS: Mapping[str, _Action] = {
    "ListStacks": _Action(reads.list_stacks, _READ),
    "DescribeStacks": _Action(reads.describe_stacks, _READ),
    "CreateStack": _Action(writes.create_stack, _WRITE, TEMPLATES),
    "UpdateStack": _Action(writes.update_stack, _WRITE, TEMPLATES),
    "CancelUpdateStack": _Action(writes.cancel_update_stack, _WRITE),
    "DeleteStack": _Action(writes.delete_stack, _WRITE),
    "GetTemplate": _Action(reads.get_template, _READ),
    "ValidateTemplate": _Action(writes.validate_template, _READ, TEMPLATES),
    "EstimateTemplateCost": _Action(reads.estimate_template_cost, _READ, TEMPLATES),
    "DescribeStackEvents": _Action(reads.describe_stack_events, _READ),
    "DescribeStackResource": _Action(reads.describe_stack_resource, CfnAction(READER, AGENT)),
    "DescribeStackResources": _Action(reads.describe_stack_resources, _READ),
    "ListStackResources": _Action(reads.list_stack_resources, _READ),
}


def is_itself(resource: Resource, stack: Stack, params: Mapping[str, str]) -> bool:
    """
    Return whether the parameters StackName and LogicalResourceId name this resource, and its stack is not deleted.
    """
    named = params["StackName"]
    right = named in (stack.name, stack.id) or named == reads.arn(stack)
    return right and resource.name == params["LogicalResourceId"] and stack.deleted_at is None


#: All parameters of all actions, for the OpenAPI document.
CfnQuery: Any = msgspec.defstruct(
    "CfnQuery",
    [
        ("Action", Annotated[str, Meta(extra_json_schema={"enum": list(ACTIONS)})]),
        ("ContentType", Annotated[str | None, Meta(description="JSON: the answer is JSON, not XML")], None),
        *{
            member.encode_name: (member.encode_name, member.type | None, None)
            for action in ACTIONS.values()
            for member in msgspec.structs.fields(action.kind)
        }.values(),
    ],
    bases=(Query,),
)
#: The contract of the requests of the query API, whose handlers decode the parameters of the requested action.
DESCRIPTION = operation(
    200,
    Any,
    media_type="application/xml",
    alternatives=("application/json",),
    request_media_type="application/x-www-form-urlencoded",
    query=CfnQuery,
)


@DESCRIPTION
async def act(request: RequestContext) -> Response:
    """
    Run an action of CloudFormation's API.

    The parameters are in the query string or in a form.
    """
    # Authentication runs on a thread of HANDLERS. Actions that parse templates then run on a thread of TEMPLATES.
    try:
        address = client_address(request.raw, request.app.settings)
        done = await HANDLERS.run(address, _begin, request)
        if isinstance(done, Response):
            return done
        return await done.action.executor.run(done.request.project, _finish, done)
    except TooManyRequests as error:
        return refusal(error, as_json=False)


@dataclass(frozen=True, slots=True)
class _StartedAction:
    action: _Action
    name: str
    request: CfnRequest
    parameters: Query


def _begin(request: RequestContext) -> Response | _StartedAction:
    as_json = False
    try:
        params = params_of(request)
        as_json = _is_json(params)
        begun = _authenticated(request, params)
    except (StokerError, Refused) as error:
        return refusal(error, as_json=as_json)
    return _finish(begun) if begun.action.executor is HANDLERS else begun


def _finish(begun: _StartedAction) -> Response:
    as_json = _is_json(begun.request.params)
    try:
        response = answer(begun.name, begun.action.do(begun.request, begun.parameters), as_json=as_json)
        return without_credentials(response) if only_reads(begun.request.context.principal) else response
    except (StokerError, Refused) as error:
        if isinstance(error, DeploymentRefused):
            authorizer.record_denial(begun.request.context.app.store, error)
        return refusal(error, as_json=as_json)


def _is_json(params: Mapping[str, str]) -> bool:
    return params.get("ContentType") == "JSON"


def _authenticated(request: RequestContext, params: Mapping[str, str]) -> _StartedAction:
    """Raises StokerError or Refused."""
    context = authenticate(request, params)
    name = params.get("Action")
    if name is None:
        raise Refused(400, "MissingAction", "the parameter Action is missing")
    action = ACTIONS.get(name)
    if action is None:
        raise Refused(400, "InvalidAction", f"there is no action {name[:100]}")
    action.access.check(context.user)
    return _StartedAction(action, name, CfnRequest(context, params), action.decode(params))
