"""
Access rules of CloudFormation's API, for authenticated callers, and the check before a large body is read.

A signature may be in the body, so the route admits every caller (``http.access.Signed``) and the handler authenticates.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from stoker.http.access import MEMBER, principal_of, with_implied_roles
from stoker.http.app import App
from stoker.http.threads import in_thread
from stoker.identity import ec2
from stoker.model.errors import Forbidden, Unauthorized
from stoker.model.principal import Principal
from stoker.model.stack import Resource, Stack

#: The parameter in a form; signature version 4 appends a scope to the key.
_IN_FORM = re.compile(rb"(?:^|&)(?:AWSAccessKeyId|X-Amz-Credential)=([A-Za-z0-9%._~-]{1,300})(?:&|/|$)")


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


async def require_known_key(request: Request, start: bytes, app: App) -> None:
    """
    Check that the request's access key exists, so that only known clients can send large bodies.

    The signature is checked later.

    The key is in the headers, the query or ``start``, the beginning of the body. Raises Unauthorized if the request has
    neither an existing key nor a valid token.
    """
    if "x-auth-token" in request.headers:
        await principal_of(request, app)
        return
    access = _access_key(request, start)
    if access is None or not await in_thread(app.keys.may_exist, access):
        raise Unauthorized("The EC2 access key is not valid, or it is not among the first 64 KiB of the request.")


def _access_key(request: Request, start: bytes) -> str | None:
    params = {
        name: request.query_params[name]
        for name in ("AWSAccessKeyId", "X-Amz-Credential", "X-Amz-Date")
        if name in request.query_params
    }
    headers = {name: request.headers[name] for name in ("authorization", "x-amz-date") if name in request.headers}
    try:
        return ec2.access_of(ec2.Request(request.method, "", "", params, "", headers))
    except Unauthorized:
        match = _IN_FORM.search(start)
        return unquote_to_bytes(match[1]).partition(b"/")[0].decode("ascii", "replace") if match else None


def _forbidden() -> Forbidden:
    return Forbidden("You are not authorized to complete this action.")
