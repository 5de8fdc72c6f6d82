"""
/cfn/v1/?Action=…: CloudFormation's query API, of which agents poll DescribeStackResource.

Most polls are answered from memory on the event loop. The key of a resource is derived, so checking the signature needs
no database read. The last response is cached until the server's document changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.deployments.derive import redact_metadata
from stoker.deployments.documents import Document
from stoker.http.cfn.access import READERS, READERS_AND_AGENTS, authenticate, check_roles, params_of, request_of
from stoker.http.cfn.serialize import Refused, answer
from stoker.http.contracts import operation
from stoker.http.request import RequestContext, Response, client_address, without_credentials
from stoker.http.threads import HANDLERS
from stoker.model.errors import EntityNotFound, StokerError
from stoker.model.ids import Arn
from stoker.model.stack import Resource, Stack, is_suspended
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import no_resource
from stoker.stacks.signals import find_target
from stoker.store import documents, resources, stacks
from stoker.store.rows import heat_time
from stoker.store.tx import Tx

Params = Mapping[str, str]


@operation(200)
def act(request: RequestContext) -> Response:
    """
    Run an action of CloudFormation's API.

    The parameters are in the query string or in a form.
    """
    params = params_of(request)
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
    response = answer(name, result, as_json=params.get("ContentType") == "JSON")
    return without_credentials(response) if signed.caller.only_reads else response


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
            raise no_resource(name, stack)
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
        "LastUpdatedTimestamp": heat_time(resource.updated_at or resource.created_at),
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
            {**_resource(stack, resource), "Timestamp": heat_time(resource.updated_at or resource.created_at)}
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
    resource = resources.anywhere(tx, physical, project)
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


_ACTION = "DescribeStackResource"
#: Maximum bytes of a query that is parsed and verified on the event loop.
_LONGEST = 4096


@operation(200)
async def poll(request: RequestContext) -> Response:
    # Agents' polls are answered from the cache; ``act`` answers all other requests.
    params = _plain_poll(request)
    resource_id = params and request.app.identity.ec2.stands_for(request_of(request, params))
    if params and resource_id:
        cached = request.app.documents.get_cached(resource_id, _form(params))
        document = cached if cached is not None else await request.in_thread(_load, request, params, resource_id)
        if document is not None:
            request.app.documents.record_sent(document, "POLL_SERVER_CFN")
            return _reply(document)
    return await HANDLERS.run(client_address(request.raw, request.app.settings), act, request)


def _plain_poll(request: RequestContext) -> Mapping[str, str] | None:
    """Return the parameters of a short DescribeStackResource request without special options; otherwise None."""
    if len(request.raw.scope["query_string"]) > _LONGEST:
        return None
    if request.raw.method != "GET" or "x-auth-token" in request.raw.headers:
        return None
    try:
        params = params_of(request)
    except StokerError:
        return None  # act reports the error
    plain = params.get("Action") == _ACTION and "ContentType" not in params and "Signature" in params
    return params if plain and {"StackName", "LogicalResourceId"} <= params.keys() else None


def _load(request: RequestContext, params: Mapping[str, str], resource_id: str) -> Document | None:
    """Read and cache the response. Return None if the request names another resource, or the resource is suspended."""
    epoch = request.app.documents.epoch
    with request.read() as tx:
        resource = resources.find(tx, resource_id)
        stack = stacks.find(tx, resource.stack_id) if resource else None
        if resource is None or stack is None or not resource.physical_id or not _is_named(resource, stack, params):
            return None
        if is_suspended(resource.action, resource.status):
            return None
        server_id = resource.physical_id
        revision = documents.revision(tx, server_id)
        detail = describe_resource(tx, request.app.engine, stack, resource)
        unsent = documents.unsent(tx, server_id, stack.project_id)
    body = answer(_ACTION, {"StackResourceDetail": detail}).content
    document = Document(revision, body, unsent)
    return request.app.documents.cache(resource_id, server_id, _form(params), document, epoch)


def _is_named(resource: Resource, stack: Stack, params: Mapping[str, str]) -> bool:
    """
    Return whether the parameters StackName and LogicalResourceId name this resource, and its stack is not deleted.
    """
    is_right_stack = params["StackName"] in (stack.name, stack.id, arn(stack)) and stack.deleted_at is None
    return is_right_stack and resource.name == params["LogicalResourceId"]


def _form(params: Mapping[str, str]) -> str:
    return f"cfn/{params['StackName']}/{params['LogicalResourceId']}"


def _reply(document: Document) -> Response:
    return Response(200, document.body, media_type="application/xml")
