"""
Access to routes: who sends a request, and who may send it.

A route names its ``Access``: the credentials that it accepts and a predicate over the caller. The first credential that
is present makes the caller, once.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request

from stoker.http.request import client_address
from stoker.http.threads import in_thread
from stoker.model.errors import EntityNotFound, Forbidden, Unauthorized
from stoker.model.principal import Principal
from stoker.servers.keys import KeyRequest

if TYPE_CHECKING:
    from stoker.http.app import App

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
_WRITERS = _INCLUDED_IN[MEMBER]


def with_implied_roles(*roles: str) -> frozenset[str]:
    """Return the roles and all roles that include one of them."""
    return frozenset().union(*(_INCLUDED_IN[role] for role in roles))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request: a user, the user of a resource, an agent, a relay, or the bearer of a signed URL."""

    #: The principal of the token or of the signature.
    principal: Principal | None = None
    #: Id of the server whose agent sends the request.
    server: str | None = None
    #: Id of the relay that sends the request.
    relay: str | None = None
    #: Id of the one resource that the caller may read or signal; None: no such limit.
    resource: str | None = None
    #: The project that the credential belongs to.
    project: str | None = None
    #: The caller uses a login or a pre-signed URL that Stoker created for the resource (``model.embedded``).
    as_owner: bool = False

    @staticmethod
    def of(principal: Principal) -> Caller:
        resource = principal.resource_id
        return Caller(principal, resource=resource, project=principal.project_id, as_owner=resource is not None)

    @property
    def only_reads(self) -> bool:
        """Whether the caller is a person who may read but not change anything."""
        principal = self.principal
        return principal is not None and principal.resource_id is None and _WRITERS.isdisjoint(principal.roles)


class Attempt(NamedTuple):
    """A request to authenticate, with the named segments of its path."""

    request: Request
    path: Mapping[str, str]
    app: App


#: Returns the caller; None: the request has no such credential. Raises Unauthorized if the credential is not valid.
Find = Callable[[Attempt], Awaitable[Caller | None]]
#: Returns whether the caller may send the request.
Predicate = Callable[[Caller, Attempt], bool]


class Credential(NamedTuple):
    """A kind of credential. ``scheme`` names it in the OpenAPI document; empty: the route describes it."""

    scheme: str
    find: Find
    #: The error of a request without it.
    missing: str = "Authentication required"


def site_admin(caller: Caller, _: Attempt) -> bool:
    """Allow site administrators, with a token for the system or for a project that the user administers."""
    return caller.principal is None or caller.principal.site_admin


class InProject:
    """
    A predicate: the caller has one of these roles, or a role that includes it, in the path's project.

    With the role AGENT, it allows the users of stack resources, too. The handler checks which resource the request
    concerns. A caller without a principal has a credential for one object.
    """

    def __init__(self, *roles: str) -> None:
        self.people = with_implied_roles(*(role for role in roles if role != AGENT))
        self.resources = with_implied_roles(*roles)

    def __call__(self, caller: Caller, attempt: Attempt) -> bool:
        principal = caller.principal
        if principal is None:
            return True
        # The user of a resource may name its login's project in the path. The request uses the resource's project.
        is_own = attempt.path["project"] in (principal.project_id, principal.login_project_id)
        return is_own and self.includes(principal)

    def includes(self, principal: Principal) -> bool:
        """Return whether the principal has one of the roles in its project."""
        return not (self.people if principal.resource_id is None else self.resources).isdisjoint(principal.roles)


class Access:
    """
    The access rule of a route: the accepted credentials in the order in which they are looked for, and a predicate.

    Without a predicate, every caller may send requests.

    Example of a rule that admits every logged-in caller:

        any_token = Access(TOKEN)
    """

    def __init__(self, *credentials: Credential, allow: Predicate | None = None) -> None:
        self.credentials = credentials
        self.allow = allow
        self._missing = credentials[0].missing if len(credentials) == 1 else TOKEN.missing

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> Caller:
        """
        Return the caller.

        ``path`` holds the named segments of the request's path. Raises Unauthorized or Forbidden.
        """
        attempt = Attempt(request, path, app)
        for credential in self.credentials:
            caller = await credential.find(attempt)
            if caller is not None:
                break
        else:
            raise Unauthorized(self._missing)
        if self.allow is not None and not self.allow(caller, attempt):
            raise Forbidden("You are not authorized to complete this action.")
        return caller


async def _anonymous(_: Attempt) -> Caller:
    return _ANONYMOUS


async def _by_token(attempt: Attempt) -> Caller | None:
    """A recently validated token is answered on the event loop; others are validated on a thread."""
    token, tokens = attempt.request.headers.get("x-auth-token"), attempt.app.tokens
    if not token:
        return None
    principal = tokens.get_cached(token)
    return Caller.of(await in_thread(tokens.validate, token) if principal is None else principal)


def _by_signal_token(read: Callable[[Request], str | None]) -> Find:
    async def find(attempt: Attempt) -> Caller | None:
        resource_id = attempt.app.signal_tokens.resource_of(read(attempt.request) or "")
        return None if resource_id is None else Caller(resource=resource_id)

    return find


async def _by_queue_token(attempt: Attempt) -> Caller:
    resource_id = attempt.app.call_tokens.resource_of(attempt.path["token"])
    if resource_id is None:
        raise EntityNotFound("The resource could not be found.")
    return Caller(resource=resource_id)


async def _by_monitoring_token(attempt: Attempt) -> Caller | None:
    expected = attempt.app.settings.metrics_token.encode()
    token = bearer_of(attempt.request).encode()
    return _ANONYMOUS if expected and hmac.compare_digest(token, expected) else None


def _by_agent_key(*, before_approval: bool) -> Find:
    async def find(attempt: Attempt) -> Caller | None:
        key = bearer_of(attempt.request)
        if not key:
            return None
        app = attempt.app
        server_id = app.servers.keys.get_cached(key)
        if server_id is None:
            wanted = KeyRequest(key, client_address(attempt.request, app.settings), before_approval)
            server_id = await app.agent_batches.keys.submit(wanted)
        return Caller(server=server_id)

    return find


async def _by_relay_key(attempt: Attempt) -> Caller | None:
    key = bearer_of(attempt.request)
    if not key:
        return None
    relays = attempt.app.servers.relays
    return Caller(relay=relays.get_cached(key) or await in_thread(relays.authenticate, key))


def bearer_of(request: Request) -> str:
    """Return the key or token of the header Authorization: Bearer; empty without it."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


_ANONYMOUS = Caller()
#: The handlers of the CloudFormation API look for a signature or a token, also in the body.
NO_CREDENTIAL, SIGNATURE = Credential("", _anonymous), Credential("ec2Signature", _anonymous)
TOKEN = Credential("token", _by_token)
#: A token that is valid only for signals to one resource, as a token and in a URL.
SIGNAL_TOKEN = Credential("", _by_signal_token(lambda request: request.headers.get("x-auth-token")))
SIGNAL_URL = Credential("", _by_signal_token(lambda request: request.query_params.get("token")))
#: The path up to the token that an external messaging service received for the queue of one resource.
SIGNALS = "/signals/"
QUEUE_TOKEN = Credential("", _by_queue_token)
#: The token that ``metrics_token`` sets.
MONITORING_TOKEN = Credential(
    "metricsToken", _by_monitoring_token, "Metrics need the token for monitoring: Authorization: Bearer <token>"
)
AGENT_KEY = Credential(
    "agentKey", _by_agent_key(before_approval=False), "an agent's key is required: Authorization: Bearer <key>"
)
#: Also the key of a server that waits for approval.
ANY_AGENT_KEY = AGENT_KEY._replace(find=_by_agent_key(before_approval=True))
RELAY_KEY = Credential("relayKey", _by_relay_key, "a relay's key is required: Authorization: Bearer <key>")

PUBLIC = Access(NO_CREDENTIAL)
#: The signature or the token may be in the body: the handler authenticates the caller and checks the caller's rights.
SIGNED = Access(SIGNATURE, TOKEN)
ANY_TOKEN = Access(TOKEN)
SITE_ADMIN = Access(TOKEN, allow=site_admin)
#: Users with the role in the path's project.
READ, WRITE = Access(TOKEN, allow=InProject(READER)), Access(TOKEN, allow=InProject(MEMBER))
