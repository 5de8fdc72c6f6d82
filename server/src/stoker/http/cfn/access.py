"""
Access rules of CloudFormation's API, for authenticated callers, and the check before a large body is read.

A signature may be in the body, so the route admits every caller (``http.access.SIGNED``) and the handler authenticates.
"""

from __future__ import annotations

from starlette.requests import Request

from stoker.http.access import AGENT, MEMBER, READER, TOKEN, Attempt, with_implied_roles
from stoker.http.app import App
from stoker.http.threads import in_thread
from stoker.identity import ec2
from stoker.model.errors import Forbidden, Unauthorized
from stoker.model.principal import Principal
from stoker.model.stack import Resource, Stack

#: Who may read stacks, and who may read the resource that is the caller's own, too.
READERS, READERS_AND_AGENTS = with_implied_roles(READER), with_implied_roles(READER, AGENT)
_SIGNALLERS = with_implied_roles(MEMBER)


def check_roles(principal: Principal, roles: frozenset[str]) -> None:
    """Raise Forbidden unless the principal has one of the roles."""
    if roles.isdisjoint(principal.roles):
        raise _forbidden()


def check_signal(principal: Principal, stack: Stack | None, resource: Resource | None) -> None:
    """
    Raise Forbidden unless the principal is the user of the resource, or a member of the project of its stack.

    Also for a missing resource, so that callers cannot find out which resources exist.
    """
    if principal.resource_id is not None:
        allowed = resource is not None and principal.resource_id == resource.id
    else:
        allowed = stack is not None and stack.project_id == principal.project_id
        allowed = allowed and not _SIGNALLERS.isdisjoint(principal.roles)
    if not allowed:
        raise _forbidden()


async def require_known_key(request: Request, app: App) -> None:
    """
    Check that the request's access key exists, so that only known clients can send large bodies.

    The signature is checked later. Raises Unauthorized if headers and query have neither an existing key nor a valid
    token.
    """
    if "x-auth-token" in request.headers:
        await TOKEN.find(Attempt(request, {}, app))
        return
    access = _access_key(request)
    if access is None or not await in_thread(app.keys.may_exist, access):
        raise Unauthorized("The EC2 access key is not valid.")


def _access_key(request: Request) -> str | None:
    params = {
        name: request.query_params[name]
        for name in ("AWSAccessKeyId", "X-Amz-Credential", "X-Amz-Date")
        if name in request.query_params
    }
    headers = {name: request.headers[name] for name in ("authorization", "x-amz-date") if name in request.headers}
    try:
        return ec2.access_of(ec2.Request(request.method, "", "", params, "", headers))
    except Unauthorized:
        return None


def _forbidden() -> Forbidden:
    return Forbidden("You are not authorized to complete this action.")
