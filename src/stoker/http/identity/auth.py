"""/identity/v3/auth: tokens, and the projects of a token's user."""

from __future__ import annotations

from typing import Any, Literal

from stoker.http.client_address import client_address
from stoker.http.contracts import operation
from stoker.http.fields import Body, Text
from stoker.http.identity.tokens import Token, TokenQuery, serialize_token
from stoker.http.identity.types import (
    NO_LINKS,
    NoLinks,
    Project,
    serialize_project,
)
from stoker.http.request_context import RequestContext, Response
from stoker.identity.directory import DOMAIN_ID, DOMAIN_NAME, SYSTEM, UNSCOPED, Named, Scope
from stoker.identity.tokens import Issued
from stoker.model.errors import EntityNotFound, Invalid, Unauthorized
from stoker.store import identity


class DomainRef(Body):
    id: Text | None = None
    name: Text | None = None


class Ref(Body):
    """A reference by id, or by name within a domain; by default the default domain."""

    id: Text | None = None
    name: Text | None = None
    domain: DomainRef | None = None

    def to_named(self) -> Named:
        domain = self.domain or DomainRef()
        if domain.id:
            return Named(self.id, self.name, domain.id)
        is_default = domain.name in (None, "", DOMAIN_NAME)
        return Named(self.id, self.name, DOMAIN_ID if is_default else f"no domain {domain.name}")


class PasswordUser(Ref, kw_only=True):
    password: str


class PasswordMethod(Body):
    user: PasswordUser


class TokenMethod(Body):
    id: str


class CredentialMethod(Ref, kw_only=True):
    secret: str
    user: Ref | None = None


class LoginIdentity(Body):
    """``methods`` names the one of the other members that counts."""

    methods: list[str]
    password: PasswordMethod | None = None
    token: TokenMethod | None = None
    application_credential: CredentialMethod | None = None


class LoginScope(Body):
    project: Ref | None = None
    system: dict[str, Any] | None = None


class LoginAuth(Body):
    identity: LoginIdentity
    scope: LoginScope | Literal["unscoped"] | None = None


class Login(Body):
    auth: LoginAuth


@operation(201, {"token": Token}, headers=("X-Subject-Token",), errors=(401,))
def log_in(request: RequestContext, body: Login, query: TokenQuery) -> Response:
    """Issue a token for a password, another token or an application credential. Raises Unauthorized."""
    return respond(201, request, _issue(request, body.auth), query)


@operation(200, {"token": Token}, headers=("X-Subject-Token",), request_headers=("X-Subject-Token",), errors=(404,))
def show(request: RequestContext, query: TokenQuery) -> Response:
    """Return the token in X-Subject-Token. Users may read only their own tokens. Raises EntityNotFound or Forbidden."""
    issued = _own_token(request)
    return Response(200, {"token": serialize_token(request, issued, query)}, {"X-Subject-Token": issued.token})


@operation(204, request_headers=("X-Subject-Token",), errors=(404,))
def revoke(request: RequestContext) -> Response:
    """
    Revoke the token in X-Subject-Token. Users may revoke only their own tokens. Raises EntityNotFound or Forbidden.
    """
    request.app.identity.tokens.revoke(_own_token(request).token)
    return Response(204)


@operation(200, {"projects": list[Project], "links": NoLinks})
def projects(request: RequestContext) -> Response:
    """List the projects in which the caller has a role."""
    with request.app.store.read() as tx:
        projects = identity.projects_of(tx, request.user.user_id)
    return Response(200, {"projects": [serialize_project(project) for project in projects], "links": NO_LINKS})


def respond(status: int, request: RequestContext, issued: Issued, query: TokenQuery) -> Response:
    """Return the response to a login."""
    headers = {"X-Subject-Token": issued.token, "Vary": "X-Auth-Token"}
    return Response(status, {"token": serialize_token(request, issued, query)}, headers)


def _issue(request: RequestContext, auth: LoginAuth) -> Issued:
    scope, address = _scope(auth.scope), client_address(request.raw, request.app.settings)
    match auth.identity:
        case LoginIdentity(methods=["password"], password=PasswordMethod(user=user)):
            return request.app.identity.log_in(user.to_named(), user.password, scope, address)
        case LoginIdentity(methods=["token"], token=TokenMethod(id=token)):
            return request.app.identity.rescope(token, scope)
        case LoginIdentity(methods=["application_credential"], application_credential=CredentialMethod() as method):
            if scope is not None:
                raise Unauthorized("An application credential is valid in its own project only: omit the scope.")
            owner = None if method.user is None else method.user.to_named()
            return request.app.identity.log_in_program(method.to_named(), owner, method.secret, address)
        case LoginIdentity(methods=["password" | "token" | "application_credential" as name]):
            raise Invalid(f"auth.identity.{name} is required")
    raise Unauthorized(
        f"the methods {auth.identity.methods!r:.200} are not supported: use one of password, token, "
        "application_credential"
    )


def _scope(scope: LoginScope | str | None) -> Scope | None:
    if scope is None:
        return None
    if isinstance(scope, str):
        return UNSCOPED
    if scope.system == {"all": True}:
        return SYSTEM
    if scope.project is None:
        raise Unauthorized("a token is for a project or for the system: give auth.scope.project or auth.scope.system")
    return Scope(scope.project.to_named())


def _own_token(request: RequestContext) -> Issued:
    """Return the token in X-Subject-Token. Raises EntityNotFound, Forbidden or Invalid."""
    token = request.raw.headers.get("x-subject-token")
    if not token:
        raise Invalid("the header X-Subject-Token is required")
    try:
        issued = request.app.identity.tokens.read(token)
    except Unauthorized:
        raise EntityNotFound("This is not a recognized token.") from None
    request.require_owner(issued.principal.user_id)
    return issued
