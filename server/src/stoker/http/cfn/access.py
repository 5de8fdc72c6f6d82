"""
Access rules of CloudFormation's API, for authenticated callers, and the check before a large body is read.

A signature may be in the body, so the route admits every caller (``http.access.SIGNED``) and the handler authenticates.
"""

from __future__ import annotations

from starlette.requests import Request

from stoker.http.access import MEMBER, TOKEN, Attempt, with_implied_roles
from stoker.http.app import App
from stoker.http.threads import in_thread
from stoker.identity import ec2
from stoker.model.errors import Forbidden, Unauthorized
from stoker.model.principal import Principal
from stoker.model.stack import Resource, Stack


class CfnAction:
    """Requires one of these roles, or a role that includes one of them, in the caller's project."""

    def __init__(self, *roles: str) -> None:
        self._roles = with_implied_roles(*roles)

    def check(self, principal: Principal) -> None:
        """Raises Forbidden."""
        if not self._roles & principal.roles:
            raise _forbidden()


class CfnSignal:
    """Requires the user of the resource, or one of these roles in the project of the resource's stack."""

    def __init__(self, *roles: str) -> None:
        self._roles = with_implied_roles(*roles)

    def check(self, principal: Principal, stack: Stack | None, resource: Resource | None) -> None:
        """Raises Forbidden, also for a missing resource, so that callers cannot find out which resources exist."""
        if principal.resource_id is not None:
            allowed = resource is not None and principal.resource_id == resource.id
        else:
            allowed = stack is not None and stack.project_id == principal.project_id
            allowed = allowed and bool(self._roles & principal.roles)
        if not allowed:
            raise _forbidden()


SIGNAL = CfnSignal(MEMBER)


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
