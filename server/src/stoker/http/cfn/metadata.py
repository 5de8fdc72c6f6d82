"""
Answers DescribeStackResource, which agents poll continuously, signed with the key of their resource.

Most polls are answered from memory on the event loop. The key is derived, so checking the signature needs no database
read. The last response is cached until the server's document changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.deployments.documents import Document
from stoker.http.cfn import actions
from stoker.http.cfn.actions import arn, describe_resource
from stoker.http.cfn.request import params_of, request_of
from stoker.http.cfn.serialize import answer
from stoker.http.contracts import operation
from stoker.http.request import RequestContext, Response, client_address
from stoker.http.threads import HANDLERS
from stoker.model.errors import StokerError
from stoker.model.stack import Resource, Stack
from stoker.model.status import is_suspended
from stoker.store import deployments, documents, resources, stacks

_ACTION = "DescribeStackResource"
#: Maximum bytes of a query that is parsed and verified on the event loop.
_LONGEST = 4096


@operation(200)
async def poll(request: RequestContext) -> Response:
    """Run an action of CloudFormation's API."""
    # Agents' polls are answered from the cache; ``actions.act`` answers all other requests.
    params = _plain_poll(request)
    resource_id = params and request.app.keys.stands_for(request_of(request, params))
    if params and resource_id:
        cached = request.app.documents.get_cached(resource_id, _form(params))
        document = cached if cached is not None else await request.in_thread(_load, request, params, resource_id)
        if document is not None:
            request.app.documents.record_sent(document, "POLL_SERVER_CFN")
            return _reply(document)
    return await HANDLERS.run(client_address(request.raw, request.app.settings), actions.act, request)


def _plain_poll(request: RequestContext) -> Mapping[str, str] | None:
    """Return the parameters of a short DescribeStackResource request without special options; otherwise None."""
    if len(request.raw.scope["query_string"]) > _LONGEST:
        return None
    if request.raw.method != "GET" or "x-auth-token" in request.raw.headers:
        return None
    try:
        params = params_of(request)
    except StokerError:
        return None  # actions.act reports the error
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
        unsent = deployments.unsent(tx, server_id, stack.project_id)
    body = answer(_ACTION, {"StackResourceDetail": detail}, as_json=False).content
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
