"""
Access rules of routes: which callers may send a request.

Each route names its rule (``http.request_context.Route.access``).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from starlette.requests import Request

from stoker.http.app import App
from stoker.http.client_address import client_address
from stoker.http.threads import in_thread
from stoker.model.errors import EntityNotFound, Forbidden, Unauthorized
from stoker.model.principal import Principal
from stoker.servers.keys import KeyRequest

READER, MEMBER, ADMIN = "reader", "member", "admin"
#: The role that Heat gives to the users of servers.
AGENT = "heat_stack_user"

#: Each role, with the roles that include it.
_INCLUDED_IN = {
    READER: frozenset((READER, MEMBER, ADMIN)),
    MEMBER: frozenset((MEMBER, ADMIN)),
    ADMIN: frozenset((ADMIN,)),
    AGENT: frozenset((AGENT,)),
}


def with_implied_roles(*roles: str) -> frozenset[str]:
    """Return the roles and all roles that include one of them."""
    return frozenset().union(*(_INCLUDED_IN[role] for role in roles))


def only_reads(principal: Principal | None) -> bool:
    """Return whether the caller is a person who may read but not change anything."""
    return principal is not None and principal.resource_id is None and not with_implied_roles(MEMBER) & principal.roles


@dataclass(frozen=True, slots=True)
class AuthResult:
    """The result of applying an access rule: the caller, and the limits of the request."""

    principal: Principal | None = None
    agent: str | None = None
    #: Id of the relay that sends the request.
    relay: str | None = None
    #: Id of the one resource that the caller may read or signal; None: no such limit.
    only: str | None = None
    #: The project of the request, if the path does not name it.
    project: str | None = None
    #: The caller uses a login or a pre-signed URL that Stoker created for the resource.
    as_owner: bool = False
    #: Id of the user whose objects the request is limited to; None: all users.
    limited_to: str | None = None


class Access(Protocol):
    """
    An access rule of a route.

    Example of a rule that admits every logged-in caller:

        class AnyToken:
            async def authenticate(self, request, path, app):
                return AuthResult(principal=await principal_of(request, app))
    """

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        """
        Authenticate the caller and check the caller's rights.

        ``path`` holds the named segments of the request's path. Raises Unauthorized or Forbidden.
        """


class Public:
    """Admits every caller."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        return AuthResult()


class Signed:
    """
    Admits every caller at first, because the signature or the token may be in the body.

    The handler authenticates the caller (``cfn.request.authenticate``) and checks the caller's
    rights (``cfn.query.ACTIONS``, ``cfn.access.SIGNAL``).
    """

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        return AuthResult()


class CallToken:
    """Requires the token in the path that an external messaging service received for the queue of one resource."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        """Raises EntityNotFound if the token is not valid."""
        resource_id = app.call_tokens.resource_of(path["token"])
        if resource_id is None:
            raise EntityNotFound("The resource could not be found.")
        return AuthResult(only=resource_id)


class AnyToken:
    """Requires any valid token."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        return AuthResult(principal=await principal_of(request, app))


class SiteAdmin:
    """Requires a site administrator, with a token for the system or for a project that the user administers."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        principal = await principal_of(request, app)
        if not principal.site_admin:
            raise Forbidden("You are not authorized to complete this action.")
        return AuthResult(principal=principal)


class MetricsToken(SiteAdmin):
    """Also admits a monitoring system with the token of the setting ``metrics_token``."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        expected = app.settings.metrics_token
        is_bearer = scheme.lower() == "bearer" and bool(expected)
        if is_bearer and hmac.compare_digest(token.strip().encode(), expected.encode()):
            return AuthResult()
        return await super().authenticate(request, path, app)


class Token:
    """
    Requires a token of the path's project with one of these roles, or with a role that includes one of them.

    The users of resources have only the role AGENT.
    """

    def __init__(self, *roles: str) -> None:
        self.roles = with_implied_roles(*roles)

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        principal = await principal_of(request, app)
        right = path["project"] in (principal.project_id, principal.login_project_id)
        if not right or not self.roles & principal.roles:
            raise Forbidden("You are not authorized to complete this action.")
        # The user of a resource may name its login's project in the path. The request uses the resource's project.
        return AuthResult(principal=principal, project=principal.project_id)


class OneResource(Token):
    """
    Also admits the user of a stack resource. The handler checks which resource the request concerns.

    Other users with the role AGENT are refused.
    """

    def __init__(self, *roles: str) -> None:
        super().__init__(*roles)
        self.for_people = with_implied_roles(*(role for role in roles if role != AGENT))

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        admitted = await super().authenticate(request, path, app)
        principal = admitted.principal
        assert principal is not None
        if principal.resource_id is None and not self.for_people & principal.roles:
            raise Forbidden("You are not authorized to complete this action.")
        return replace(admitted, only=principal.resource_id)


class MaySignal(OneResource):
    """Also admits a token that is valid only for signals to one resource."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        resource_id = app.signal_tokens.resource_of(request.headers.get("x-auth-token", ""))
        if resource_id is not None:
            return AuthResult(only=resource_id)
        return await super().authenticate(request, path, app)


class MaySignalDeployment(OneResource):
    """
    Also admits agent keys, and the signal URL of the deployment's config.

    The handler checks which deployment the caller may signal.
    """

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        token = request.query_params.get("token") or request.headers.get("x-auth-token", "")
        own = app.signal_tokens.resource_of(token)
        if own is not None:
            return AuthResult(only=own)
        if "x-auth-token" not in request.headers and "authorization" in request.headers:
            return await AgentKey().authenticate(request, path, app)
        return await super().authenticate(request, path, app)


class AgentKey:
    """
    Requires the key of an enrolled server's agent.

    ``before_approval``: admits the agent of a server that waits for approval, too.
    """

    def __init__(self, *, before_approval: bool = False) -> None:
        self.before_approval = before_approval

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Unauthorized("an agent's key is required: Authorization: Bearer <key>")
        server_id = app.servers.keys.get_cached(key)
        if server_id is None:
            wanted = KeyRequest(key, client_address(request, app.settings), self.before_approval)
            server_id = await app.agent_batches.keys.submit(wanted)
        return AuthResult(agent=server_id)


class RelayKey:
    """Requires the key of a relay."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Unauthorized("a relay's key is required: Authorization: Bearer <key>")
        relay_id = app.servers.relays.get_cached(key)
        if relay_id is None:
            relay_id = await in_thread(app.servers.relays.authenticate, key)
        return AuthResult(relay=relay_id)


async def principal_of(request: Request, app: App) -> Principal:
    """
    Return the principal of the request's token.

    A recently validated token is answered on the event loop; others are validated on a thread. Raises Unauthorized.
    """
    token = request.headers.get("x-auth-token")
    if not token:
        raise Unauthorized("Authentication required")
    principal = app.tokens.get_cached(token)
    return principal if principal is not None else await in_thread(app.tokens.validate, token)
