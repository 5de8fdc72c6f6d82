"""/identity/v3/auth: tokens, and the catalog and projects of a token."""

from __future__ import annotations

from typing import Any

from stoker.http.client_address import client_address
from stoker.http.identity import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.identity.directory import DOMAIN_ID, DOMAIN_NAME, SYSTEM, UNSCOPED, Named, Scope
from stoker.identity.tokens import Issued
from stoker.model.errors import EntityNotFound, Invalid, Unauthorized
from stoker.store import identity


def log_in(request: RequestContext) -> Response:
    """
    Issue a token for a password, another token or an application credential.

    Raises Unauthorized, or Invalid if the body is malformed.
    """
    said = _map(_map(request.json(), "body").get("auth"), "auth")
    methods = _map(said.get("identity"), "auth.identity").get("methods")
    scope = _scope(said.get("scope"))
    match methods:
        case ["password"]:
            user = _map(_map(said["identity"].get("password"), "password").get("user"), "password.user")
            password = user.get("password")
            if not isinstance(password, str):
                raise Invalid("auth.identity.password.user.password must be a string")
            address = client_address(request.raw, request.app.settings)
            issued = request.app.identity.log_in(_parse_named(user, "user"), password, scope, address)
        case ["token"]:
            token = _map(said["identity"].get("token"), "token").get("id")
            if not isinstance(token, str):
                raise Invalid("auth.identity.token.id must be a string")
            issued = request.app.identity.rescope(token, scope)
        case ["application_credential"]:
            issued = _log_in_program(request, said["identity"], scope)
        case _:
            raise Unauthorized(
                f"the methods {methods!r} are not supported: use one of password, token, application_credential"
            )
    return Response(201, serialize(request, issued), {"X-Subject-Token": issued.token, "Vary": "X-Auth-Token"})


def show(request: RequestContext) -> Response:
    """Return the token in X-Subject-Token. Users may read only their own tokens. Raises EntityNotFound or Forbidden."""
    subject = _subject(request)
    try:
        issued = request.app.identity.tokens.read(subject)
    except Unauthorized:
        raise EntityNotFound("This is not a recognized token.") from None
    request.require_owner(issued.principal.user_id)
    return Response(200, serialize(request, issued), {"X-Subject-Token": subject})


def revoke(request: RequestContext) -> Response:
    """
    Revoke the token in X-Subject-Token. Users may revoke only their own tokens. Raises EntityNotFound or Forbidden.
    """
    subject = _subject(request)
    try:
        request.require_owner(request.app.identity.tokens.read(subject).principal.user_id)
    except Unauthorized:
        raise EntityNotFound("This is not a recognized token.") from None
    request.app.identity.tokens.revoke(subject)
    return Response(204)


def catalog(request: RequestContext) -> Response:
    return Response(200, {"catalog": serializers.catalog(request.app.settings, request.user.project_id), "links": {}})


def projects(request: RequestContext) -> Response:
    """List the projects in which the caller has a role."""
    with request.app.store.read() as tx:
        found = identity.projects_of(tx, request.user.user_id)
    return Response(200, {"projects": [serializers.project(each) for each in found], "links": {}})


def domains(_: RequestContext) -> Response:
    return Response(200, {"domains": [{**serializers.DOMAIN, "enabled": True, "description": ""}], "links": {}})


def _log_in_program(request: RequestContext, said: dict[str, Any], scope: Scope | None) -> Issued:
    if scope is not None:
        raise Unauthorized("An application credential is valid in its own project only: omit the scope.")
    given = _map(said.get("application_credential"), "application_credential")
    secret = given.get("secret")
    if not isinstance(secret, str):
        raise Invalid("auth.identity.application_credential.secret must be a string")
    user = _parse_named(_map(given["user"], "application_credential.user"), "user") if given.get("user") else None
    address = client_address(request.raw, request.app.settings)
    return request.app.identity.log_in_program(_parse_named(given, "application_credential"), user, secret, address)


def serialize(request: RequestContext, issued: Issued) -> dict[str, Any]:
    """Return Keystone's JSON for an issued token; without the catalog if the query contains ``nocatalog``."""
    principal = issued.principal
    project = None
    if principal.project_id is not None:
        with request.app.store.read() as tx:
            project = identity.project(tx, principal.project_id)
    site = None if "nocatalog" in request.query else request.app.settings
    return {"token": serializers.token(principal, project, issued.row, site)}


def _subject(request: RequestContext) -> str:
    token = request.raw.headers.get("x-subject-token")
    if not token:
        raise Invalid("the header X-Subject-Token is required")
    return token


def _scope(said: Any) -> Scope | None:
    if said is None:
        return None
    if said == "unscoped":
        return UNSCOPED
    scope = _map(said, "auth.scope")
    if scope.get("system") == {"all": True}:
        return SYSTEM
    if "project" not in scope:
        raise Unauthorized("a token is for a project or for the system: give auth.scope.project or auth.scope.system")
    return Scope(_parse_named(_map(scope["project"], "auth.scope.project"), "project"))


def _parse_named(said: dict[str, Any], what: str) -> Named:
    domain = _map(said.get("domain") or {"id": DOMAIN_ID}, f"{what}.domain")
    for value in (said.get("id"), said.get("name"), domain.get("id"), domain.get("name")):
        if value is not None and (not isinstance(value, str) or "\0" in value):
            raise Invalid(f"names and ids of {what} must be strings")
    domain_id = domain.get("id") or (DOMAIN_ID if domain.get("name") == DOMAIN_NAME else f"no domain {domain}")
    return Named(said.get("id"), said.get("name"), domain_id)


def _map(said: Any, what: str) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise Invalid(f"{what} must be an object")
    return said
