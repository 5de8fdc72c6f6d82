"""
The one call that agents make all day: DescribeStackResource, signed with the key of the resource itself.

Mostly answered from memory and on the event loop: the key is derived, so that its signature is checked without a look
into the store, and what was answered last holds until the server's document changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.deployments.documents import Document
from stoker.http.call import Call, Reply
from stoker.http.cfn import query
from stoker.http.cfn.asking import params_of, request_of
from stoker.http.cfn.reads import described
from stoker.http.cfn.serialize import answer
from stoker.model.errors import StokerError
from stoker.model.status import is_suspended
from stoker.store import documents, resources, runs, stacks

_ACTION = "DescribeStackResource"


async def poll(call: Call) -> Reply:
    params = _plain_poll(call)
    resource_id = params and call.services.keys.stands_for(request_of(call, params))
    if params and resource_id:
        known = call.services.documents.known(resource_id, _form(params))
        found = known if known is not None else await call.in_thread(_load, call, params, resource_id)
        if found is not None:
            call.services.documents.went_out(found, "POLL_SERVER_CFN")
            return _reply(found)
    return await call.in_thread(query.act, call)


def _plain_poll(call: Call) -> Mapping[str, str] | None:
    """The parameters, where this is such a call and asks for nothing special."""
    if call.request.method != "GET" or "x-auth-token" in call.request.headers:
        return None
    try:
        params = params_of(call)
    except StokerError:
        return None  # said by the one who answers all the others
    plain = params.get("Action") == _ACTION and "ContentType" not in params and "Signature" in params
    return params if plain and {"StackName", "LogicalResourceId"} <= params.keys() else None


def _load(call: Call, params: Mapping[str, str], resource_id: str) -> Document | None:
    """None where the resource is not the one that is asked for."""
    with call.services.store.read() as tx:
        found = resources.find(tx, resource_id)
        stack = stacks.find(tx, found.stack_id) if found else None
        if found is None or stack is None or not found.physical_id or not query.is_itself(found, stack, params):
            return None
        if is_suspended(found.action, found.status):
            return None
        server_id = found.physical_id
        revision = documents.revision(tx, server_id)
        shown = described(tx, call.services.engine, stack, found)
        news = runs.undelivered(tx, server_id, stack.project_id)
    body = answer(_ACTION, {"StackResourceDetail": shown}, as_json=False).content
    document = Document(revision, body, news)
    return call.services.documents.remember(resource_id, server_id, _form(params), document)


def _form(params: Mapping[str, str]) -> str:
    return f"cfn/{params['StackName']}/{params['LogicalResourceId']}"


def _reply(document: Document) -> Reply:
    return Reply(200, document.body, media_type="application/xml")
