"""/identity/v3/auth: tokens, and the projects of a token's user."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any, Literal

from stoker.http import audit_trail
from stoker.http.contracts import StrictBody, Text, operation
from stoker.http.identity.access import limit_of
from stoker.http.identity.catalog import catalog
from stoker.http.identity.serializers import DOMAIN, listing, serialize_project, time
from stoker.http.request import RequestContext, Response, client_address
from stoker.identity.directory import DOMAIN_ID, DOMAIN_NAME, SYSTEM, UNSCOPED, Named, Scope
from stoker.identity.tokens import Issued
from stoker.model.errors import EntityNotFound, Forbidden, Invalid, Unauthorized
from stoker.store import identity
from stoker.store.tx import Tx


class DomainRef(StrictBody):
    id: Text | None = None
    name: Text | None = None


class Ref(StrictBody):
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


class PasswordMethod(StrictBody):
    user: PasswordUser


class TokenMethod(StrictBody):
    id: str


class CredentialMethod(Ref, kw_only=True):
    secret: str
    user: Ref | None = None


class LoginIdentity(StrictBody):
    """``methods`` names the one of the other members that counts."""

    methods: list[str]
    password: PasswordMethod | None = None
    token: TokenMethod | None = None
    application_credential: CredentialMethod | None = None


class LoginScope(StrictBody):
    project: Ref | None = None
    system: dict[str, Any] | None = None


class Login(StrictBody):
    identity: LoginIdentity
    scope: LoginScope | Literal["unscoped"] | None = None


@operation(201, member="auth")
def log_in(request: RequestContext, body: Login) -> Response:
    """Issue a token for a password, another token or an application credential. Raises Unauthorized."""
    name, address = _name_of(body.identity), client_address(request.raw, request.app.settings)
    issue = partial(_issue, request, body, address)
    if name is None:
        issued = issue()
    else:
        issued = audit_trail.audit_login(request.app.store, name, address, issue, attrgetter("principal"))
    headers = {"X-Subject-Token": issued.token, "Vary": "X-Auth-Token"}
    return Response(201, {"token": _serialize(request, issued)}, headers)


@operation(200)
def show(request: RequestContext) -> Response:
    """Return the token in X-Subject-Token. Users may read only their own tokens. Raises EntityNotFound or Forbidden."""
    issued = _own_token(request)
    return Response(200, {"token": _serialize(request, issued)}, {"X-Subject-Token": issued.token})


@operation(204)
def revoke(request: RequestContext) -> None:
    """
    Revoke the token in X-Subject-Token. Users may revoke only their own tokens. Raises EntityNotFound or Forbidden.
    """
    request.app.identity.tokens.revoke(_own_token(request).token)


@operation(200)
def projects(request: RequestContext, tx: Tx) -> dict[str, Any]:
    return listing("projects", map(serialize_project, identity.list_projects(tx, user_id=request.user.user_id)))


def _serialize(request: RequestContext, issued: Issued) -> dict[str, Any]:
    principal, row, project = issued.principal, issued.row, issued.project
    token: dict[str, Any] = {
        "methods": list(row.methods),
        "user": {
            "id": principal.user_id,
            "name": principal.user_name,
            "domain": DOMAIN,
            "password_expires_at": None,
        },
        "audit_ids": [],
        "issued_at": time(row.issued_at),
        "expires_at": time(principal.expires_at),
    }
    if project is not None:
        token |= {"project": {"id": project.id, "name": project.name, "domain": DOMAIN}, "is_domain": False}
    if row.system:
        token["system"] = {"all": True}
    if project is not None or row.system:
        token["roles"] = [{"id": role, "name": role} for role in sorted(principal.roles)]
        if "nocatalog" not in request.query:
            token["catalog"] = catalog(request.app.settings, principal.project_id)
    if row.application_credential_id is not None:
        token["application_credential"] = {
            "id": row.application_credential_id,
            "restricted": principal.restricted,
        }
    return token


def _name_of(login: LoginIdentity) -> str | None:
    """Return whom the login names; None for a new token in exchange for another one."""
    if login.password is not None:
        return login.password.user.name or login.password.user.id
    if login.application_credential is not None:
        credential = login.application_credential
        return f"application credential {credential.name or credential.id}"
    return None


def _issue(request: RequestContext, auth: Login, address: str) -> Issued:
    scope = _scope(auth.scope)
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
    if limit_of(request) not in (None, issued.principal.user_id):
        raise Forbidden("You are not authorized to perform the requested action.")
    return issued
