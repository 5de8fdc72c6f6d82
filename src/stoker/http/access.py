"""Who may call a route: the answer stands in its row of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from starlette.requests import Request

from stoker.http.services import Services
from stoker.http.threads import in_thread
from stoker.model.errors import Forbidden, Unauthorized
from stoker.model.principal import Principal

READER, MEMBER, ADMIN = "reader", "member", "admin"
#: Heat's role of the users it gives to servers.
AGENT = "heat_stack_user"

#: A role and those that include it.
_INCLUDED_IN = {
    READER: frozenset((READER, MEMBER, ADMIN)),
    MEMBER: frozenset((MEMBER, ADMIN)),
    ADMIN: frozenset((ADMIN,)),
    AGENT: frozenset((AGENT,)),
}


def including(*roles: str) -> frozenset[str]:
    """Any of these roles, and those that include one."""
    return frozenset().union(*(_INCLUDED_IN[role] for role in roles))


@dataclass(frozen=True, slots=True)
class Admitted:
    principal: Principal | None = None
    agent: str | None = None
    #: The one resource that the caller may see or signal.
    only: str | None = None
    #: Whose things it is about, where the path does not say that.
    project: str | None = None


class Access(Protocol):
    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        """Raises Unauthorized or Forbidden."""


class Public:
    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        return Admitted()


class AnyToken:
    """Whoever has logged in."""

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        return Admitted(principal=await principal_of(request, services))


class Token:
    """
    A token of the path's project with one of these roles, or with one that includes it.

    Users that stand for one resource have no other role than AGENT.
    """

    def __init__(self, *roles: str) -> None:
        self._roles = including(*roles)

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        principal = await principal_of(request, services)
        right = path["project"] in (principal.project_id, principal.login_project_id)
        if not right or not self._roles & principal.roles:
            raise Forbidden("You are not authorized to complete this action.")
        # Whoever stands for a resource may name the project of its login: it sees that of the resource.
        return Admitted(principal=principal, project=principal.project_id)


class OneResource(Token):
    """Also the user that stands for one resource of a stack: which one, the handler sees to."""

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        admitted = await super().admit(request, path, services)
        assert admitted.principal is not None
        return replace(admitted, only=admitted.principal.resource_id)


class MaySignal(OneResource):
    """Also with a token that is for signals to one resource."""

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        resource_id = services.signal_tokens.resource_of(request.headers.get("x-auth-token", ""))
        if resource_id is not None:
            return Admitted(only=resource_id)
        return await super().admit(request, path, services)


class MaySignalDeployment(OneResource):
    """
    A token of the project, that of the user that stands for the deployment, the key of a server's own agent, or the URL
    that the deployment's config brings: what each may signal, the handler sees to.
    """

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        token = request.query_params.get("token") or request.headers.get("x-auth-token", "")
        own = services.signal_tokens.resource_of(token)
        if own is not None:
            return Admitted(only=own)
        if "x-auth-token" not in request.headers and "authorization" in request.headers:
            return await AgentKey().admit(request, path, services)
        return await super().admit(request, path, services)


class AgentKey:
    """The key of an enrolled server's agent."""

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Unauthorized("an agent's key is required: Authorization: Bearer <key>")
        server_id = services.servers.keys.known(key)
        if server_id is None:
            server_id = await in_thread(services.servers.keys.authenticate, key)
        return Admitted(agent=server_id)


async def principal_of(request: Request, services: Services) -> Principal:
    """On the event loop when the token was seen lately, else with a look into the store."""
    token = request.headers.get("x-auth-token")
    if not token:
        raise Unauthorized("Authentication required")
    known = services.tokens.known(token)
    return known if known is not None else await in_thread(services.tokens.validate, token)
