"""
The caller of a request to CloudFormation's API, and what the caller may do.

A signature may be in the body, so the route admits every caller (``http.access.SIGNED``) and the handler authenticates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

from stoker.http.access import AGENT, MEMBER, READER, Caller, with_implied_roles
from stoker.http.cfn.serialize import Refused
from stoker.http.request import RequestContext
from stoker.identity import ec2
from stoker.model.errors import Forbidden, Invalid, Unauthorized
from stoker.model.principal import Principal
from stoker.model.stack import Resource, Stack

#: Who may read stacks, and who may read the resource that is the caller's own, too.
READERS, READERS_AND_AGENTS = with_implied_roles(READER), with_implied_roles(READER, AGENT)
_SIGNALLERS = with_implied_roles(MEMBER)


def check_roles(principal: Principal, roles: frozenset[str]) -> None:
    """Raise Forbidden unless the principal has one of the roles."""
    if roles.isdisjoint(principal.roles):
        raise Forbidden("You are not authorized to complete this action.")


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
        raise Forbidden("You are not authorized to complete this action.")


#: Maximum number of parameters.
_FIELDS = 100


def params_of(request: RequestContext) -> dict[str, str]:
    """Return the parameters of the query string and the form. Raises Invalid if they are not UTF-8 text."""
    texts = [request.raw.url.query]
    try:
        if request.body and request.media_type == "application/x-www-form-urlencoded":
            texts.append(request.body.decode())
        # Bytes that are not UTF-8 can be neither looked up nor displayed.
        pairs = [
            pair
            for text in texts
            for pair in parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
        ]
    except ValueError:
        raise Invalid(f"the parameters must be a form of at most {_FIELDS} texts in UTF-8") from None
    params = dict(pairs)
    if any("\0" in value or "\0" in name for name, value in params.items()):
        raise Invalid("a parameter contains NUL")
    return params


def authenticate(request: RequestContext, params: Mapping[str, str]) -> RequestContext:
    """
    Return the request with the caller that its token or signature names, and with the caller's limits.

    Raises Refused or Unauthorized.
    """
    tokens = request.app.tokens
    if token := request.raw.headers.get("x-auth-token"):
        principal = tokens.get_cached(token) or tokens.validate(token)
    else:
        principal = _by_signature(request, params)
    if principal.project_id is None:
        raise Unauthorized("use a token that is scoped to a project")
    return replace(request, caller=Caller.of(principal))


def request_of(request: RequestContext, params: Mapping[str, str]) -> ec2.Request:
    """
    Return the parts of the request that its signature covers. The signature is empty if the request is not signed.
    """
    headers = {name.lower(): value for name, value in request.raw.headers.items()}
    signature = params.get("Signature") or params.get("X-Amz-Signature")
    if signature is None:
        _, _, signature = headers.get("authorization", "").rpartition("Signature=")
    return ec2.Request(
        verb=request.raw.method,
        host=headers.get("host", ""),
        path=request.raw.scope["path"],
        params={name: value for name, value in params.items() if name not in ("Signature", "X-Amz-Signature")},
        signature=signature,
        headers=headers,
        body_hash=hashlib.sha256(request.body).hexdigest(),
    )


def _by_signature(request: RequestContext, params: Mapping[str, str]) -> Principal:
    signed = request_of(request, params)
    if not signed.signature:
        raise Refused(400, "IncompleteSignature", "the request is not signed")
    try:
        ec2.access_of(signed)
    except Unauthorized as error:
        raise Refused(403, "MissingAuthenticationToken", error.message) from None
    keys = request.app.identity.ec2
    try:
        return keys.authenticate(signed)
    except Unauthorized:
        # A proxy may send another Host header than the host of the URL that the agent received and signed.
        public = urlsplit(request.app.settings.public_url).netloc
        if public.lower() == signed.host.lower():
            raise
        return keys.authenticate(replace(signed, host=public))
