"""/cfn/v1/?Action=…: CloudFormation's query API, of which agents poll DescribeStackResource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.deployments.derive import redact_metadata
from stoker.http.cfn.access import READERS, READERS_AND_AGENTS, check_roles
from stoker.http.cfn.request import authenticate, params_of
from stoker.http.cfn.serialize import Refused, answer, refusal
from stoker.http.contracts import operation
from stoker.http.heat.serializers import time
from stoker.http.request import RequestContext, Response, without_credentials
from stoker.model.arn import Arn
from stoker.model.errors import EntityNotFound, StokerError
from stoker.model.stack import Resource, Stack
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.stacks.signals import find_target
from stoker.store import resources, stacks
from stoker.store.tx import Tx

Params = Mapping[str, str]


@operation(200)
def act(request: RequestContext) -> Response:
    """
    Run an action of CloudFormation's API.

    The parameters are in the query string or in a form.
    """
    as_json = False
    try:
        params = params_of(request)
        as_json = params.get("ContentType") == "JSON"
        signed = authenticate(request, params)
        name = params.get("Action")
        if name is None:
            raise Refused(400, "MissingAction", "the parameter Action is missing")
        if name not in ACTIONS:
            raise Refused(400, "InvalidAction", f"there is no action {name[:100]}")
        roles, do = ACTIONS[name]
        check_roles(signed.user, roles)
        # Empty parameters count as missing.
        result = do(signed, {key: value for key, value in params.items() if value})
        response = answer(name, result, as_json=as_json)
        return without_credentials(response) if signed.caller.only_reads else response
    except StokerError as error:
        return refusal(error, as_json=as_json)


def describe_stack_resource(request: RequestContext, params: Params) -> Any:
    """
    Return a resource with its metadata; os-collect-config polls this action.

    The user of a resource sees only that resource. Raises Refused, EntityNotFound or Forbidden.
    """
    ref = _required(params, "StackName")
    name = _required(params, "LogicalResourceId")
    with request.read() as tx:
        stack = _find_stack(tx, request.project, ref)
        resource = find_target(tx, stack, name, request.caller.resource)
        if resource is None:
            request.require_resource(None)
            raise EntityNotFound(f"The Resource ({name}) could not be found in Stack {stack.name}.")
        detail = describe_resource(tx, request.app.engine, stack, resource)
        if request.caller.resource is None:  # the caller is a person, not an agent
            detail["Metadata"] = redact_metadata(tx, detail["Metadata"])
        return {"StackResourceDetail": detail}


def describe_resource(tx: Tx, engine: Engine, stack: Stack, resource: Resource) -> dict[str, Any]:
    """Return the resource as CloudFormation's StackResourceDetail, with its current metadata."""
    transition = StackSession(tx, engine, stack)
    live = transition.type_of(resource).live_metadata(transition.context, resource)
    return {
        **_resource(stack, resource),
        "LastUpdatedTimestamp": time(resource.updated_at or resource.created_at),
        "Metadata": {**resource.metadata, **live},
    }


def describe_stack_resources(request: RequestContext, params: Params) -> Any:
    """
    List the resources of the stack StackName, or of the stack that contains the resource PhysicalResourceId.

    Raises Refused or EntityNotFound.
    """
    with request.read() as tx:
        match (params.get("StackName"), params.get("PhysicalResourceId")):
            case (str(name), None):
                stack = _find_stack(tx, request.project, name)
            case (None, str(physical)):
                stack = _of_physical(tx, request.project, physical)
            case _:
                raise Refused(400, "InvalidParameterCombination", "give StackName or PhysicalResourceId")
        present = resources.of_stack(tx, stack.id)
    return {
        "StackResources": [
            {**_resource(stack, resource), "Timestamp": time(resource.updated_at or resource.created_at)}
            for resource in present
            if resource.current and params.get("LogicalResourceId") in (None, resource.name)
        ]
    }


def arn(stack: Stack) -> str:
    """Return the ARN by which CloudFormation's API identifies the stack."""
    return str(Arn(stack.project_id, stack.name, stack.id))


def _required(params: Params, name: str) -> str:
    if name not in params:
        raise Refused(400, "MissingParameter", f"{name} parameter is missing")
    return params[name]


def _find_stack(tx: Tx, project: str, ref: str) -> Stack:
    """Find a stack of the project by name, id or ARN. Raises EntityNotFound."""
    if ref.lower().startswith("arn:"):
        stack = stacks.find(tx, Arn.parse(ref).stack_id)
    else:
        stack = stacks.find_by_name(tx, ref, project) or stacks.find(tx, ref)
    if stack is None or stack.project_id != project or stack.deleted_at is not None:
        raise EntityNotFound.of("Stack", ref)
    return stack


def _of_physical(tx: Tx, project: str, physical: str) -> Stack:
    resource = resources.anywhere(tx, project, physical)
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if stack is None:
        raise EntityNotFound.of("Resource", physical)
    return stack


def _resource(stack: Stack, resource: Resource) -> dict[str, Any]:
    return {
        "LogicalResourceId": resource.name,
        "PhysicalResourceId": resource.physical_id or "",
        "ResourceStatus": f"{resource.action}_{resource.status}",
        "ResourceStatusReason": resource.reason,
        "ResourceType": resource.declared_type,
        "Description": resource.definition.get("description") or "",
        "StackId": arn(stack),
        "StackName": stack.name,
    }


#: The actions with the roles that may request them.
ACTIONS: Mapping[str, tuple[frozenset[str], Callable[[RequestContext, Params], Any]]] = {
    "DescribeStackResource": (READERS_AND_AGENTS, describe_stack_resource),
    "DescribeStackResources": (READERS, describe_stack_resources),
}
