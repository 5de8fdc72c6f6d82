"""/identity/v3/auth"""

from __future__ import annotations

from typing import Any

from stoker.http.call import Call, Reply
from stoker.http.identity import shapes
from stoker.identity.directory import DOMAIN_ID, DOMAIN_NAME, Named
from stoker.identity.tokens import Issued
from stoker.model.errors import EntityNotFound, Forbidden, Invalid, Unauthorized
from stoker.store import identity


def log_in(call: Call) -> Reply:
    said = _map(_map(call.json(), "body").get("auth"), "auth")
    methods = _map(said.get("identity"), "auth.identity").get("methods")
    scope = _scope(said.get("scope"))
    match methods:
        case ["password"]:
            user = _map(_map(said["identity"].get("password"), "password").get("user"), "password.user")
            password = user.get("password")
            if not isinstance(password, str):
                raise Invalid("auth.identity.password.user.password must be a string")
            issued = call.services.identity.log_in(_named(user, "user"), password, scope)
        case ["token"]:
            token = _map(said["identity"].get("token"), "token").get("id")
            if not isinstance(token, str):
                raise Invalid("auth.identity.token.id must be a string")
            issued = call.services.identity.rescope(token, scope)
        case ["application_credential"]:
            issued = _log_in_program(call, said["identity"], scope)
        case _:
            raise Unauthorized(
                f"the methods {methods!r} are not supported: use one of password, token, application_credential"
            )
    return Reply(201, shown(call, issued), {"X-Subject-Token": issued.token, "Vary": "X-Auth-Token"})


def show(call: Call) -> Reply:
    subject = _subject(call)
    try:
        issued = call.services.identity.tokens.read(subject)
    except Unauthorized:
        raise EntityNotFound("This is not a recognized token.") from None
    _own(call, issued.principal.user_id)
    return Reply(200, shown(call, issued), {"X-Subject-Token": subject})


def revoke(call: Call) -> Reply:
    subject = _subject(call)
    try:
        _own(call, call.services.identity.tokens.read(subject).principal.user_id)
    except Unauthorized:
        raise EntityNotFound("This is not a recognized token.") from None
    call.services.identity.tokens.revoke(subject)
    return Reply(204)


def catalog(call: Call) -> Reply:
    return Reply(200, {"catalog": shapes.catalog(call.services.settings, call.user.project_id), "links": {}})


def projects(call: Call) -> Reply:
    """Those the caller has a role in."""
    with call.services.store.read() as tx:
        found = identity.projects_of(tx, call.user.user_id)
    return Reply(200, {"projects": [shapes.project(each) for each in found], "links": {}})


def domains(_: Call) -> Reply:
    return Reply(200, {"domains": [{**shapes.DOMAIN, "enabled": True, "description": ""}], "links": {}})


def _log_in_program(call: Call, said: dict[str, Any], scope: Named | None) -> Issued:
    if scope is not None:
        raise Unauthorized("An application credential is for its own project: leave the scope out.")
    given = _map(said.get("application_credential"), "application_credential")
    secret = given.get("secret")
    if not isinstance(secret, str):
        raise Invalid("auth.identity.application_credential.secret must be a string")
    user = _named(_map(given["user"], "application_credential.user"), "user") if given.get("user") else None
    return call.services.identity.log_in_program(_named(given, "application_credential"), user, secret)


def shown(call: Call, issued: Issued) -> dict[str, Any]:
    principal = issued.principal
    project = None
    if principal.project_id is not None:
        with call.services.store.read() as tx:
            project = identity.project(tx, principal.project_id)
    site = None if "nocatalog" in call.query else call.services.settings
    return {"token": shapes.token(principal, project, issued.row, site)}


def _subject(call: Call) -> str:
    token = call.request.headers.get("x-subject-token")
    if not token:
        raise Invalid("the header X-Subject-Token is required")
    return token


def _own(call: Call, user_id: str) -> None:
    if user_id != call.user.user_id and "admin" not in call.user.roles:
        raise Forbidden("You are not authorized to perform the requested action.")


def _scope(said: Any) -> Named | None:
    if said is None or said == "unscoped":
        return None
    scope = _map(said, "auth.scope")
    if "project" not in scope:
        raise Unauthorized("only projects are scopes here: give auth.scope.project")
    return _named(_map(scope["project"], "auth.scope.project"), "project")


def _named(said: dict[str, Any], what: str) -> Named:
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
