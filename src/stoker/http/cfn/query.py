"""/cfn/v1/?Action=…"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.deployments import gate
from stoker.http.access import AGENT, MEMBER, READER, including
from stoker.http.call import Call, Reply
from stoker.http.cfn import reads, writes
from stoker.http.cfn.asking import Asking, params_of, signer
from stoker.http.cfn.serialize import Refused, answer, refusal
from stoker.model.errors import DeploymentRefused, Forbidden, StokerError
from stoker.model.stack import Resource, Stack


@dataclass(frozen=True, slots=True)
class _Action:
    do: Callable[[Asking], Any]
    roles: frozenset[str]


_READ, _WRITE = including(READER), including(MEMBER)
ACTIONS: Mapping[str, _Action] = {
    "ListStacks": _Action(reads.list_stacks, _READ),
    "DescribeStacks": _Action(reads.describe_stacks, _READ),
    "CreateStack": _Action(writes.create_stack, _WRITE),
    "UpdateStack": _Action(writes.update_stack, _WRITE),
    "CancelUpdateStack": _Action(writes.cancel_update_stack, _WRITE),
    "DeleteStack": _Action(writes.delete_stack, _WRITE),
    "GetTemplate": _Action(reads.get_template, _READ),
    "ValidateTemplate": _Action(writes.validate_template, _READ),
    "EstimateTemplateCost": _Action(reads.estimate_template_cost, _READ),
    "DescribeStackEvents": _Action(reads.describe_stack_events, _READ),
    "DescribeStackResource": _Action(reads.describe_stack_resource, _READ | {AGENT}),
    "DescribeStackResources": _Action(reads.describe_stack_resources, _READ),
    "ListStackResources": _Action(reads.list_stack_resources, _READ),
}


def is_itself(resource: Resource, stack: Stack, params: Mapping[str, str]) -> bool:
    """Whether StackName and LogicalResourceId name that resource."""
    named = params["StackName"]
    right = named in (stack.name, stack.id) or named == reads.arn(stack)
    return right and resource.name == params["LogicalResourceId"] and stack.deleted_at is None


def act(call: Call) -> Reply:
    as_json = False
    try:
        params = params_of(call)
        as_json = params.get("ContentType") == "JSON"
        try:
            return _acted(call, params, as_json=as_json)
        except DeploymentRefused as refused:
            gate.keep(call.services.store, refused)
            raise
    except (StokerError, Refused) as error:
        return refusal(error, as_json=as_json)


def _acted(call: Call, params: Mapping[str, str], *, as_json: bool) -> Reply:
    """Raises StokerError, Refused."""
    principal = signer(call, params)
    name = params.get("Action")
    if name is None:
        raise Refused(400, "MissingAction", "the parameter Action is missing")
    action = ACTIONS.get(name)
    if action is None:
        raise Refused(400, "InvalidAction", f"there is no action {name[:100]}")
    if not action.roles & principal.roles:
        raise Forbidden("You are not authorized to complete this action.")
    return answer(name, action.do(Asking(call, params, principal)), as_json=as_json)
